#!/usr/bin/env bash
# On a machine with a GPU, from a bare checkout, with the Python packages that are there and no network: builds the extensions, runs
# the tests of CUDA, then the benchmarks, the most informative rows first. Ends within 9 minutes; keeps its figures when it is cut.
#
#   benchmarks/gpu.sh [FOLDER]      writes gpu.json, gpu.txt and logs to FOLDER (default: benchmarks/results)
#
# PYTHON: the interpreter (default python3). SECONDS_OF_TESTS, SECONDS_OF_ROWS: time for each part (default 120 and 330). SCALE:
# divisor of the sizes. MODES: modes of compile that are measured, all but max-autotune-tma by default. FRAMEJIT_EMULATE_CUDA=1 with
# SCALE=64 rehearses all of it without a GPU.
set -uo pipefail
cd "$(dirname "$0")/.."
out=${1:-benchmarks/results}
py=${PYTHON:-python3}
mkdir -p "$out"
export PYTHONPATH="$PWD${PYTHONPATH:+:$PYTHONPATH}" PYTHONUNBUFFERED=1 FRAMEJIT_AUTOTUNE_BUDGET_S="${FRAMEJIT_AUTOTUNE_BUDGET_S:-8}"

if ! "$py" -c "import eager, dynamo, inductor._native" 2>/dev/null; then
  "$py" -c "from setuptools import setup; setup()" -q build_ext --inplace -j "$(nproc)" >"$out/build.log" 2>&1 || { tail -20 "$out/build.log"; exit 1; }
fi
"$py" - <<'PY'
import eager
from inductor.runtime import blas
print(eager.cuda.get_device_name(), "capability %d.%d" % eager.cuda.get_device_capability())
print("cuBLASLt", blas.version() or "not found", "and cuDNN", eager.backends.cudnn.version() or "not used")
PY

tests=${SECONDS_OF_TESTS:-120}
if [ "$tests" -gt 0 ]; then
  shards=$(( $(nproc) < 8 ? $(nproc) : 8 ))
  for ((i = 0; i < shards; i++)); do
    timeout "$((tests + 20))" "$py" -m tests.cuda.report --seconds "$tests" --shard "$i/$shards" >"$out/ops-$i.txt" 2>&1 &
  done
  wait
  cat "$out"/ops-?.txt >"$out/ops.txt" && rm -f "$out"/ops-?.txt
  grep "^# " "$out/ops.txt"
fi
torch=()
"$py" -c "import torch" 2>/dev/null && torch=(--torch-python "$py")
rows=${SECONDS_OF_ROWS:-330}
timeout "$((rows + 60))" "$py" -m benchmarks gpu "${torch[@]}" --seconds "$rows" --scale "${SCALE:-1}" ${MODES:+--modes $MODES} --out "$out" 2>"$out/gpu.err" | tee "$out/gpu.txt"
