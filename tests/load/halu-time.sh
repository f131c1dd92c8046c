#!/bin/sh
# How long KGHaluBench takes for one model, beside the paper's 4.47 s per question, which it spent on one question after the
# other: 150 questions, against a simulated vLLM with the latencies of one H100 that serves 8 billion parameters. Every judge has
# that speed; stages follow each other, so that one GPU is busy with one of them.
#
# Run: KGFLEET=target/release/kgfleet tests/load/halu-time.sh [QUESTIONS] [PROFILE]
set -eu
kgfleet=$(command -v "${KGFLEET:-kgfleet}")
questions=${1:-150}
profile=${2:-h100-8b}
repository=$(cd "$(dirname "$0")/../.." && pwd)
folder=$(mktemp -d)
simulator=
trap 'if [ -n "$simulator" ]; then kill "$simulator"; fi; rm -rf "$folder"' EXIT
cd "$folder"

cargo run -q --manifest-path "$repository/Cargo.toml" -p harness --features invented-graph --example invented-graph -- 1 "$folder"
"$kgfleet" halu generate --kg graph.ttl --mapping mapping.toml --questions "$questions" --assessments 1 --out one.kgpack > generated.txt
{
    printf 'name = "one model"\npipeline = "kghalubench"\npack = "%s/one.kgpack"\nseed = 1\niterations = %s\n' "$folder" "$questions"
    printf 'tasks = ["KGHalu-01"]\n[[models]]\nlabel = "model"\nconnector = "simulated"\nskill = 0.5\n'
    for role in writer abstention embedder classifier entailment expert; do
        printf '[judges.%s]\nlabel = "%s"\nconnector = "simulated"\nskill = 1.0\n' "$role" "$role"
    done
} > simulated.toml
"$kgfleet" simulate --benchmark simulated.toml --profile "$profile" --listen 127.0.0.1:0 > address.txt &
simulator=$!
until [ -s address.txt ]; do sleep 0.1; done
url=$(cat address.txt)
sed -e '/^skill/d' -e "s|^connector = .*|connector = \"openai-compatible\"\nendpoint = \"$url\"|" simulated.toml > served.toml

begun=$(date +%s.%N)
"$kgfleet" run served.toml --data-dir data > result.txt 2> talk.txt || { cat talk.txt; exit 1; }
ended=$(date +%s.%N)
cat result.txt
awk -v begun="$begun" -v ended="$ended" -v questions="$questions" -v profile="$profile" 'BEGIN {
    took = ended - begun
    printf "%d questions, profile %s: %.1f s, %.3f s per question; the paper: 4.47 s, one after the other\n", \
        questions, profile, took, took / questions
}'
