// Sends one sign-in email through Postern. Needs no modules.
package main

import (
	"bytes"
	"crypto/rand"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"
)

// Email is the body of a request.
type Email struct {
	To        string    `json:"to"`
	Type      string    `json:"type"`
	URL       string    `json:"url"`
	ExpiresAt time.Time `json:"expiresAt"`
}

var client = &http.Client{Timeout: 5 * time.Second}

// Send returns the id of the email once it is on disk.
func Send(email Email) (string, error) {
	body, err := json.Marshal(email)
	if err != nil {
		return "", err
	}
	// The same key for each try, so that a repeated request queues nothing twice.
	random := make([]byte, 16)
	rand.Read(random)
	key := hex.EncodeToString(random)
	var id string
	for _, pause := range []time.Duration{200 * time.Millisecond, 600 * time.Millisecond, 0} {
		var retry bool
		id, retry, err = post(body, key)
		if err == nil || !retry {
			break
		}
		time.Sleep(pause)
	}
	return id, err
}

// post makes one try. Without an answer, and after a 503, another try may succeed.
func post(body []byte, key string) (id string, retry bool, err error) {
	request, err := http.NewRequest("POST", os.Getenv("POSTERN_BASE_URL")+"/v1/email", bytes.NewReader(body))
	if err != nil {
		return "", false, err
	}
	request.Header.Set("Authorization", "Bearer "+os.Getenv("POSTERN_DELIVERY_KEY"))
	request.Header.Set("Content-Type", "application/json")
	request.Header.Set("Idempotency-Key", key)
	answer, err := client.Do(request)
	if err != nil {
		return "", true, err
	}
	defer answer.Body.Close()
	if answer.StatusCode == http.StatusAccepted {
		return answer.Header.Get("Email-Id"), false, nil
	}
	message, _ := io.ReadAll(io.LimitReader(answer.Body, 64<<10))
	return "", answer.StatusCode == http.StatusServiceUnavailable, fmt.Errorf("%s: %s", answer.Status, message)
}

func main() {
	id, err := Send(Email{
		To:        "ada@example.com",
		Type:      "magic_link",
		URL:       "https://app.example.com/auth?token=demo-1234",
		ExpiresAt: time.Now().Add(15 * time.Minute),
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	fmt.Println(id)
}
