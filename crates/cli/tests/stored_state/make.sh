#!/usr/bin/env bash
# Makes the stored state of one version, which every later version must open, verify, resume and list.
# Usage: make.sh TGP-BINARY OUTPUT.tar.gz. Run it once for each released version and commit the archive; never make an
# archive again with a newer binary, because then it proves nothing.
set -euo pipefail
tgp=$(realpath "$1")
output=$(realpath -m "$2")
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export HOME=$work/home TGP_HOME=$work/home/tgp XDG_CACHE_HOME=$work/home/cache
export GIT_CONFIG_GLOBAL=/dev/null GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@example.com
export GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@example.com
mkdir -p "$HOME" "$work/project"
cd "$work/project"
tgp() { "$tgp" "$@"; }

git init --quiet --initial-branch main
tgp init --json > /dev/null
mkdir -p src .sage
echo "export const price = 3;" > src/price.ts
echo "import { price } from './price'; export const total = price;" > src/app.ts
git add -A && git commit --quiet -m 'first'

# Tools, a table, and the records of calls that passed, failed and were denied.
tgp write tools/math/double.ts > /dev/null <<'TS'
/** Twice a number. */
export default function double(args: { n: number }): number {
  return args.n * 2;
}
TS
tgp exec tools/math/double.ts --args '{"n": 21}' > /dev/null
tgp sql 'CREATE TABLE visits (page TEXT)' > /dev/null
tgp sql "INSERT INTO visits VALUES ('/start')" > /dev/null
tgp call fs_read '{"path": ".env"}' > /dev/null || true
tgp call fs_write '{"path": "notes.md", "content": "stored\n"}' --yes > /dev/null

# Rules of the project.
cat > tgp.policy.yaml <<'YAML'
version: 1
rules:
  - id: no-drop
    effect: deny
    tools: exec_sql
    where: { statement: drop }
    reason: tables are never dropped
YAML
tgp policy check > /dev/null

# One finished session, and one that reached a limit and can be resumed.
cat > model.json <<'JSON'
[[{"type": "tool_call", "toolName": "fs_read", "callId": "1", "arguments": {"path": "notes.md"}}],
 [{"type": "text", "value": "It says stored."}]]
JSON
tgp run "what do the notes say" --provider script:model.json > /dev/null 2>&1
cat > limited.json <<'JSON'
[[{"type": "tool_call", "toolName": "fs_read", "callId": "1", "arguments": {"path": "notes.md"}}],
 [{"type": "text", "value": "Resumed to the end."}]]
JSON
tgp run "read the notes, slowly" --provider script:limited.json --max-steps 1 > /dev/null 2>&1 || true

# One finished query, and one killed in its second step.
cat > done.aql <<'AQL'
query Done {
  number: exec("tools/math/double.ts") { n: 4 }
  return number
}
AQL
tgp aql run done.aql --yes > /dev/null 2>&1
cat > slow.aql <<'AQL'
query Slow {
  file: tool(fs_read) { path: "notes.md" }
  said: agent(model: "script:slow.json") { prompt: "{{file.content}}" }
  return said
}
AQL
echo '[{"events": [{"type": "text", "value": "a note"}], "delayMs": 60000}]' > slow.json
"$tgp" aql run slow.aql > /dev/null 2> "$work/slow.log" &
until grep -q 'said agent' "$work/slow.log"; do sleep 0.1; done
kill -KILL $!; wait || true

# Tokens: the root's and an attenuated one.
tgp token mint --tools 'effect:read,exec_tool' --expires 3650d > token.txt 2> /dev/null
tgp token attenuate "$(cat token.txt)" --tools 'fs_read' > narrow.txt 2> /dev/null

# Chronicle, graph, valve, TDD state.
tgp chronicle append src/price.ts '{"type": "DECISION", "timestamp": "2026-11-15T12:00:00Z", "actor": {"agent": "person", "id": "ann"}, "why": "whole cents"}' > /dev/null
tgp graph ingest > /dev/null
printf 'personas:\n  - name: guard\n    filters: ["src/**"]\n' > .sage/valve.yml
tgp valve scan > /dev/null 2>&1
echo "export const price = 4;" > src/price.ts
tgp valve scan > /dev/null 2>&1
tgp state set idle > /dev/null 2>&1
tgp audit verify

cd "$work"
mkdir -p "$(dirname "$output")"
tar --sort=name --owner=0 --group=0 --numeric-owner -czf "$output" project
ls -l "$output"
