/*
 * Worker sessions on PostgreSQL (src/store/postgres/queue), for spin (Promela): two workers, up to three emails,
 * and faults. The names are those of worker-session.ts, missing-sessions.ts, claim.sql and record.sql. A tick is
 * half a second. Checked in full for IN_USE=1 (one email) and FAULTS=1; with two faults it finds that a process
 * which starts within seconds after an outage may take back the mail of a worker that is not back yet.
 */
#define WORKERS 2
#define EMAILS 3
#define MISSING 2       /* missingForMs */
#define AFTER 10        /* afterFailureMs */
#ifndef DIAL
#define DIAL 6          /* dialPauseMaxMs and the deadline of a connection */
#endif
#ifndef FAULTS
#define FAULTS 2
#endif
#define NONE 15

mtype = { queued, sending, done, idle, claimed, handed };

/* The server: rows, and the session id whose lock the connection of each worker holds, or 0. */
bool up = true;
byte down;                         /* how long the server has been down */
mtype row[EMAILS] = queued;
byte leasedBy[EMAILS];
byte lock[WORKERS];

/* The network, and the faults that are left. */
bool reachable[WORKERS] = true;
byte faults = FAULTS;

/* The workers. Times count in ticks. */
bool alive[WORKERS] = true;
byte id[WORKERS];
byte last[WORKERS];
byte confirmed[WORKERS];           /* since the last answer was asked for */
byte asked[WORKERS] = NONE;        /* since the question that has no answer yet */
bool answered[WORKERS];
byte hold[WORKERS];                /* until it may take mail back */
byte dial[WORKERS];                /* until it opens a connection again */
byte missing[WORKERS * 4];         /* since a session was first missing, plus 1 */
byte call[WORKERS] = NONE;         /* the session of the claim that is under way */
mtype attempt[WORKERS * EMAILS] = idle;
bool holds[WORKERS * EMAILS];       /* whether its fence is still that of the row */
byte heldSession[WORKERS * EMAILS];

/* What the checks need. */
bool cutOff[WORKERS];              /* out of reach since its last session, while the server was up */
byte sendable[EMAILS] = 1;         /* 1, and 1 for each attempt whose outcome nobody can know, less the copies sent */

#define at(w, e) ((w) * EMAILS + (e))
/* Two ids for each worker, in turn. Ids of real sessions are random. */
#define fresh(w) (1 + 2 * (w) + (last[w] == 1 + 2 * (w) -> 1 : 0))
/* Handed over, with an outcome that can still be recorded. */
#define isSent(w, e) (holds[at(w, e)] && attempt[at(w, e)] == handed)
#define owner(s) ((s) > 2 -> 1 : 0)
#define isLeasedBy(e, s) (row[e] == sending && leasedBy[e] == (s))
#define isUsed(s) (isLeasedBy(0, s) || isLeasedBy(1, s) || isLeasedBy(2, s))
#define isLocked(s) (lock[0] == (s) || lock[1] == (s))
#define isValid(w, s) ((s) != 0 && id[w] == (s) && confirmed[w] < MISSING)
#define canReach(w) (up && reachable[w])
#define isKnown(s) (isUsed(s) || missing[(s) - 1] > 0 || missing[3 + (s)] > 0)
#define mustDial(w) (alive[w] && id[w] == 0 && dial[w] == 0 && (!canReach(w) || !isKnown(fresh(w))))
#define mustNotice(w) (alive[w] && id[w] != 0 && lock[w] != id[w])
#define isOver (row[0] == done && row[1] == done && row[2] == done)

inline end_session(w) {
  id[w] = 0; asked[w] = NONE; answered[w] = false
}

/* An email whose attempt a living worker knows about is taken back only from one that was cut off. */
inline take_back(e) {
  v = owner(leasedBy[e]);
  if
  :: isSent(v, e) -> assert(cutOff[v]); sendable[e]++
  :: else
  fi;
  next_fence(e); row[e] = queued
}

inline next_fence(e) {
  holds[at(0, e)] = false; holds[at(1, e)] = false
}

inline maintain(w) {
  s = 1;
  do
  :: s <= 4 ->
    if
    :: s != id[w] && missing[w * 4 + s - 1] > MISSING && hold[w] == 0 ->
      e = 0;
      do
      :: e < EMAILS -> if :: isLeasedBy(e, s) -> take_back(e) :: else fi; e++
      :: else -> break
      od
    :: else
    fi;
    if
    :: s != id[w] && isUsed(s) && !isLocked(s) ->
      missing[w * 4 + s - 1] = (missing[w * 4 + s - 1] == 0 -> 1 : missing[w * 4 + s - 1])
    :: else -> missing[w * 4 + s - 1] = 0
    fi;
    s++
  :: else -> break
  od
}

#define attempts(e) \
  :: d_step { attempt[at(w, e)] == claimed && isValid(w, heldSession[at(w, e)]) -> \
      assert(holds[at(w, e)] && sendable[e] > 0); \
      sendable[e]--; attempt[at(w, e)] = handed } \
  :: d_step { attempt[at(w, e)] == claimed && !isValid(w, heldSession[at(w, e)]) && canReach(w) -> \
      if :: holds[at(w, e)] -> next_fence(e); row[e] = queued :: else fi; \
      forget(w, e) } \
  :: d_step { attempt[at(w, e)] == handed && canReach(w) -> \
      if :: holds[at(w, e)] -> row[e] = done; leasedBy[e] = 0 :: else fi; \
      forget(w, e) }

inline forget(w, e) {
  attempt[at(w, e)] = idle; holds[at(w, e)] = false; heldSession[at(w, e)] = 0
}

proctype Worker(byte w) {
  byte e, s, v;
  do
  /* The session. */
  :: d_step { alive[w] && id[w] != 0 && asked[w] == NONE -> asked[w] = 0 }
  :: d_step { asked[w] != NONE && !answered[w] && canReach(w) && lock[w] == id[w] -> answered[w] = true }
  :: d_step { answered[w] ->
#ifdef AGE_FROM_ANSWER
      confirmed[w] = 0;
#else
      confirmed[w] = asked[w];
#endif
      asked[w] = NONE; answered[w] = false }
  :: d_step { mustNotice(w) || (alive[w] && id[w] != 0 && !reachable[w]) ->
      last[w] = id[w]; end_session(w);
#ifndef NO_HOLD
      hold[w] = AFTER;
#endif
      dial[w] = 0 }
  :: d_step { mustDial(w) && !canReach(w) ->
      dial[w] = (down == 0 -> 1 : down) /* the pauses double */ }
  :: d_step { mustDial(w) && canReach(w) ->
      s = fresh(w); lock[w] = s;
#ifndef NO_ADOPT
      e = 0;
      do
      :: e < EMAILS -> if :: last[w] != 0 && isLeasedBy(e, last[w]) -> leasedBy[e] = s :: else fi; e++
      :: else -> break
      od;
#endif
      id[w] = s; confirmed[w] = 0; cutOff[w] = false; s = 0; e = 0 }

  /* Claims. The session is read first, and the statement may run much later. */
  :: d_step { alive[w] && call[w] == NONE && !isOver -> call[w] = (isValid(w, id[w]) -> id[w] : 0) }
  :: d_step { call[w] != NONE && canReach(w) ->
      maintain(w);
      e = (row[0] == queued -> 0 : (row[1] == queued -> 1 : (row[2] == queued -> 2 : NONE)));
      if
      :: call[w] != 0 && e != NONE && attempt[at(w, e)] == idle ->
        row[e] = sending; next_fence(e); leasedBy[e] = call[w];
        attempt[at(w, e)] = claimed; holds[at(w, e)] = true; heldSession[at(w, e)] = call[w]
      :: else
      fi;
      call[w] = NONE; e = 0; s = 0; v = 0 }
  :: d_step { call[w] != NONE && !canReach(w) -> call[w] = NONE }

  attempts(0)
  attempts(1)
  attempts(2)
  od
}

/* A death, a server that restarts, a session that is ended, a worker that cannot reach the server. */
proctype Faults() {
  byte e, w;
  do
  :: atomic { faults > 0 && !isOver -> faults--;
      if :: w = 0 :: w = 1 fi;
      if
      :: alive[w] -> alive[w] = false; lock[w] = 0; call[w] = NONE; end_session(w); last[w] = 0; e = 0;
        do
        :: e < EMAILS -> if :: isSent(w, e) -> sendable[e]++ :: else fi; forget(w, e); e++
        :: else -> break
        od
      :: up -> up = false; lock[0] = 0; lock[1] = 0
      :: lock[w] != 0 -> lock[w] = 0
      :: reachable[w] -> reachable[w] = false; cutOff[w] = true
      fi;
      e = 0; w = 0 }
  :: d_step { !up -> up = true }
  :: d_step { !alive[0] -> alive[0] = true; hold[0] = 0; dial[0] = 0 }
  :: d_step { !alive[1] -> alive[1] = true; hold[1] = 0; dial[1] = 0 }
  :: d_step { !reachable[0] -> reachable[0] = true }
  :: d_step { !reachable[1] -> reachable[1] = true }
  /* The server finds that a client is gone. */
  :: d_step { !reachable[0] && lock[0] != 0 -> lock[0] = 0 }
  :: d_step { !reachable[1] && lock[1] != 0 -> lock[1] = 0 }
  od
}

#define count(t, most) t = (t < most -> t + 1 : t)
#define count_down(t) t = (t > 0 -> t - 1 : 0)

/* A worker that can reach the server opens its session in time, and sees that a connection was closed. */
proctype Clock() {
  byte w, s;
  do
  :: d_step { !isOver && !mustDial(0) && !mustDial(1) && !mustNotice(0) && !mustNotice(1) ->
      w = 0;
      do
      :: w < WORKERS ->
        count(confirmed[w], MISSING);
        if :: asked[w] != NONE -> count(asked[w], MISSING) :: else fi;
        count_down(dial[w]);
#ifndef NO_HOLD
        if
        :: alive[w] && !canReach(w) -> hold[w] = AFTER /* its claims fail */
        :: else -> count_down(hold[w])
        fi;
#endif
        s = 0;
        do
        :: s < 4 -> if :: missing[w * 4 + s] > 0 -> count(missing[w * 4 + s], MISSING + 1) :: else fi; s++
        :: else -> break
        od;
        w++
      :: else -> break
      od;
      if :: up -> down = 0 :: else -> count(down, DIAL) fi;
      w = 0; s = 0 }
  od
}

#ifndef IN_USE
#define IN_USE EMAILS
#endif
init {
  byte n = IN_USE;
  atomic {
    do :: n < EMAILS -> row[n] = done; n++ :: else -> break od;
    run Worker(0); run Worker(1); run Faults(); run Clock()
  }
}
