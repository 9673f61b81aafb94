#!/bin/sh
# install.sh VENV ARGUMENTS...: pip install into an environment, made if need be, without a pip of its own; from /wheels
# alone where there are any.
set -eu
venv=$1
shift
[ -x "$venv/bin/python" ] || python -m venv --without-pip "$venv"
if ls /wheels/*.whl >/dev/null 2>&1; then
  export PIP_NO_INDEX=1 PIP_FIND_LINKS=/wheels
elif [ -n "${TORCH_INDEX_URL:-}" ]; then
  # Its builds carry a local version, which wins over the same version without one. Nothing but torch is asked of it.
  case "$*" in *torch*|*trainer*) export PIP_EXTRA_INDEX_URL="$TORCH_INDEX_URL" ;; esac
fi
exec python -m pip --python "$venv/bin/python" install "$@"
