#!/bin/sh
# Prepares the demo of compose.yaml: the merchant Demo, the URL of its receiver, and a token for Prometheus. The secrets
# are written to files of the folder that is the argument. A second run changes nothing; after an interrupted one it
# starts again.
set -eu
folder=$1

# The member of a JSON document on standard input.
member() { node -p "JSON.parse(require('node:fs').readFileSync(0, 'utf8')).$1"; }
# Puts standard input into a file with this mode, at once or not at all.
keep() { (umask 077 && cat > "$1.new") && chmod "$2" "$1.new" && mv "$1.new" "$1"; }

lockgate merchant list --json | grep -q '"Demo"' || lockgate merchant add Demo
if [ ! -e "$folder/webhook-secret" ]; then
  added=$(lockgate webhook add http://127.0.0.1:9000/ --merchant Demo --json)
  printf %s "$added" | member secret | keep "$folder/webhook-secret" 600
fi
if [ ! -e "$folder/prometheus-token" ]; then
  lockgate token revoke prometheus 2> /dev/null || true
  created=$(lockgate token create prometheus --role metrics --json)
  # Prometheus runs as another user. The token reads metrics and nothing else.
  printf %s "$created" | member token | keep "$folder/prometheus-token" 644
fi
