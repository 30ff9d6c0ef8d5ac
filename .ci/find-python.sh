#!/bin/sh
# Prints a CPython that can build this project: 3.11 to 3.13, with venv, ensurepip and its C headers.
# A pyenv shim on PATH may exist and not run, so every candidate is tried, not looked up.
check='
import sys, sysconfig, os, venv, ensurepip
ok = sys.implementation.name == "cpython" and (3, 11) <= sys.version_info[:2] <= (3, 13)
ok = ok and os.path.exists(os.path.join(sysconfig.get_paths()["include"], "Python.h"))
print(sys.executable) if ok else sys.exit(1)
'
for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 \
    "${PYENV_ROOT:-$HOME/.pyenv}"/versions/3.1[123].*/bin/python /usr/bin/python3 /usr/local/bin/python3; do
  found=$("$candidate" -c "$check" 2>/dev/null) && { echo "$found"; exit 0; }
done
echo "no usable Python found: framejit needs CPython 3.11, 3.12 or 3.13 with venv and the C headers" >&2
echo "  Debian, Ubuntu: apt install python3-dev python3-venv      Fedora: dnf install python3-devel" >&2
echo "  or name one:    make PYTHON=/path/to/python3" >&2
exit 1
