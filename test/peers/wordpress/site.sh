#!/usr/bin/env bash
# Debian's WordPress, with an account, and the settings for email that `postern auth-hook connect` prints.
# In: EMAIL_SETTINGS, SITE_FOLDER, SITE_PORT, SSL_CERT_FILE. Runs until it is killed.
set -euo pipefail
cd "$SITE_FOLDER"
PATH="$PATH:/usr/sbin"

mariadb-install-db --no-defaults --datadir="$PWD/db" --auth-root-authentication-method=normal --skip-test-db > db.log
mariadbd --no-defaults --datadir="$PWD/db" --socket="$PWD/db.sock" --skip-networking --user="$(id -un)" \
  --init-file="$PWD/init.sql" >> db.log 2>&1 &
trap 'kill %1 %2 2>/dev/null; wait' EXIT
trap exit TERM
echo 'create database if not exists site;' > init.sql

cp --recursive --dereference /usr/share/wordpress site
mkdir -p site/wp-content/mu-plugins
{
  echo '<?php'
  echo "$EMAIL_SETTINGS"
  # Its sender would be wordpress@localhost, which its mailer refuses.
  echo "add_filter('wp_mail_from', fn () => 'wordpress@acme.test');"
  # A login would ask first whether the address of the administrator is right.
  echo "add_filter('admin_email_check_interval', '__return_zero');"
} > site/wp-content/mu-plugins/email.php
cat > site/wp-config.php << PHP
<?php
define('DB_NAME', 'site');
define('DB_USER', 'root');
define('DB_PASSWORD', '');
define('DB_HOST', 'localhost:$PWD/db.sock');
define('DISABLE_WP_CRON', true);
define('WP_HTTP_BLOCK_EXTERNAL', true);
define('WP_HOME', 'http://localhost:$SITE_PORT');
define('WP_SITEURL', WP_HOME);
\$table_prefix = 'wp_';
defined('ABSPATH') || define('ABSPATH', __DIR__ . '/');
require_once ABSPATH . 'wp-settings.php';
PHP
cat > install.php << 'PHP'
<?php
define('WP_INSTALLING', true);
require 'site/wp-load.php';
require 'site/wp-admin/includes/upgrade.php';
wp_install('Acme', 'ada', 'ada@example.com', false, '', 'the old one');
PHP
for _ in $(seq 300); do [ -S db.sock ] && break; sleep 0.1; done
php -d openssl.cafile="$SSL_CERT_FILE" install.php
php -d openssl.cafile="$SSL_CERT_FILE" -S "localhost:$SITE_PORT" -t site > site.log 2>&1 &
wait %2
