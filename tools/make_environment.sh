#!/usr/bin/env bash
# Create the virtual environment FOLDER if there is none, and install this checkout into it
# (editable) with the extras EXTRAS; or the file WHEEL.
#
#     tools/make_environment.sh FOLDER EXTRAS|WHEEL [INTERPRETER [OVERRIDES]]
#
# Without INTERPRETER (or with an empty one) the first suitable one of the list below is taken.
# OVERRIDES is a file of requirements that take the place of everybody's, GPflow's included; the
# interpreter may then be newer than pyproject.toml allows.
#
# An environment of another checkout that still exists is used as it is. Installing this checkout
# into it would make that checkout import these sources.
#
# uv installs in a quarter of pip's time, and knows overrides. Where it cannot, pip does. Both compile
# what they install, so that the first import of TensorFlow takes no longer than later imports.
set -euo pipefail

folder=$1
extras=$2
wanted=${3:-}
overrides=${4:-}
log="$folder/install.log"
export PIP_DISABLE_PIP_VERSION_CHECK=1

owner=$(cat "$folder/.checkout" 2>/dev/null || true)
if [[ $extras != *.whl && -d $owner && ! $owner -ef . ]]; then
    echo "$folder is the environment of $owner: nothing is installed into it"
    exit
fi

# Runs the interpreter instead of looking for its name: a version manager may leave a command
# of that name which only prints an error, and Debian's may come without venv.
is_suitable() {
    local below="(3, 13)"
    if [[ $overrides ]]; then below="(4,)"; fi
    "$1" -c "import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] < $below)" \
        >/dev/null 2>&1
}

find_interpreter() {
    local candidate
    for candidate in ${wanted:-python3.12 python3.11 python3.10 python3}; do
        if is_suitable "$candidate"; then
            echo "$candidate"
            return
        fi
    done
    echo "interdomain needs Python 3.10, 3.11 or 3.12 with its venv module." >&2
    echo "Tried: ${wanted:-python3.12 python3.11 python3.10 python3}." >&2
    echo "Name a suitable interpreter: make <target> PYTHON=/path/to/python3.11" >&2
    return 1
}

# Runs a command with its output in the log. Shows one line that follows the log (on a terminal)
# or a line every half minute (elsewhere); prints the end of the log if the command fails.
with_progress() {
    local pid last status=0
    "$@" >"$log" 2>&1 &
    pid=$!
    trap 'kill "$pid" 2>/dev/null || true; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        last=$(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-60)
        if [[ -t 1 ]]; then
            printf '\r\033[K  %3d s  %s' "$SECONDS" "$last"
        elif ((SECONDS % 30 == 0)); then
            printf '  %3d s  %s\n' "$SECONDS" "$last"
        fi
    done
    wait "$pid" || status=$?
    trap - INT TERM
    if [[ -t 1 ]]; then printf '\r\033[K'; fi
    if ((status)); then
        tail -n 40 "$log" >&2
        echo "Installation failed; the whole output is in $log" >&2
        return "$status"
    fi
}

# What pip is configured for, by its variables or its files: `from_pip index-url`.
from_pip() {
    local variable=PIP_${1^^}
    variable=${variable//-/_}
    # Unquoted: several values come one a line, and are wanted in one.
    echo ${!variable:-$("$folder/bin/python" -m pip config get "global.$1" 2>/dev/null)}
}

# Sends uv to the same indexes, unless its own variables name others.
configure_uv() {
    local name links
    links=$(from_pip find-links)
    export UV_DEFAULT_INDEX=${UV_DEFAULT_INDEX:-$(from_pip index-url)}
    export UV_INDEX=${UV_INDEX:-$(from_pip extra-index-url)}
    export UV_FIND_LINKS=${UV_FIND_LINKS:-${links// /,}}
    export UV_CONSTRAINT=${UV_CONSTRAINT:-$(from_pip constraint)}
    export SSL_CERT_FILE=${SSL_CERT_FILE:-$(from_pip cert)}
    for name in UV_DEFAULT_INDEX UV_INDEX UV_FIND_LINKS UV_CONSTRAINT SSL_CERT_FILE; do
        if [[ -z ${!name} ]]; then unset "$name"; fi
    done
    # Of several indexes pip takes the best version; uv would take the first that knows the name.
    export UV_INDEX_STRATEGY=${UV_INDEX_STRATEGY:-unsafe-best-match}
}

if ! is_suitable "$folder/bin/python"; then
    interpreter=$(find_interpreter)
    echo "Creating $folder with $("$interpreter" --version)"
    "$interpreter" -m venv --clear "$folder"
fi

what=(--editable ".[$extras]")
if [[ $extras == *.whl ]]; then what=("$extras"); fi
echo "Installing ${what[*]} into $folder (TensorFlow is large: a minute or more the first time)"
pip_install=("$folder/bin/python" -m pip install --progress-bar off)
install_by_uv() {
    with_progress "${pip_install[@]}" --target "$folder/uv" --upgrade uv && configure_uv &&
        with_progress "$folder/uv/bin/uv" pip install --compile-bytecode \
            --python "$folder/bin/python" "$@"
}

if [[ $overrides ]]; then
    # First what the checkout requires, then the checkout alone: only pip can be asked to install
    # it for an interpreter that it does not allow.
    install_by_uv --override "$overrides" --requirements pyproject.toml --extra "$extras"
    with_progress "${pip_install[@]}" --no-deps --ignore-requires-python --editable .
elif ! install_by_uv "${what[@]}"; then
    echo "uv cannot, and pip goes on"
    with_progress "${pip_install[@]}" "${what[@]}"
fi
if [[ $extras != *.whl ]]; then
    pwd >"$folder/.checkout"
    touch "$folder/.installed-$extras"
fi
printf '  installed in %d s\n' "$SECONDS"
if [[ $overrides ]]; then
    echo "What $overrides overrides, in the words of pip check:"
    "$folder/bin/python" -m pip check | sed 's/^/  /' || true
fi
