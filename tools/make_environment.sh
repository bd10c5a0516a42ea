#!/usr/bin/env bash
# Create the virtual environment FOLDER if there is none, and install this checkout into it
# (editable) with the extras EXTRAS.
#
#     tools/make_environment.sh FOLDER EXTRAS [INTERPRETER]
#
# Without INTERPRETER the first suitable one of the list below is taken.
set -euo pipefail

folder=$1
extras=$2
wanted=${3:-}
log="$folder/install.log"

# Runs the interpreter instead of looking for its name: a version manager may leave a command
# of that name which only prints an error, and Debian's may come without venv.
is_suitable() {
    "$1" -c 'import ensurepip, sys, venv; sys.exit(not (3, 10) <= sys.version_info[:2] < (3, 13))' \
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
    local start=$SECONDS pid last status=0
    "$@" >"$log" 2>&1 &
    pid=$!
    trap 'kill "$pid" 2>/dev/null || true; exit 130' INT TERM
    while kill -0 "$pid" 2>/dev/null; do
        sleep 1
        last=$(tail -n 1 "$log" | tr '\r' '\n' | tail -n 1 | cut -c 1-60)
        if [[ -t 1 ]]; then
            printf '\r\033[K  %3d s  %s' "$((SECONDS - start))" "$last"
        elif ((SECONDS - start > 0 && (SECONDS - start) % 30 == 0)); then
            printf '  %3d s  %s\n' "$((SECONDS - start))" "$last"
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
    printf '  installed in %d s\n' "$((SECONDS - start))"
}

if ! is_suitable "$folder/bin/python"; then
    interpreter=$(find_interpreter)
    echo "Creating $folder with $("$interpreter" --version)"
    "$interpreter" -m venv --clear "$folder"
fi

echo "Installing interdomain[$extras] into $folder (TensorFlow is large: minutes the first time)"
export PIP_DISABLE_PIP_VERSION_CHECK=1
with_progress "$folder/bin/python" -m pip install --progress-bar off --editable ".[$extras]"
