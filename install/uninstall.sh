#!/bin/sh
# Removes what install.sh put below a prefix, and nothing else.
#
#   install/uninstall.sh [--prefix DIR]
#
# The prefix is that of the copy which is run, else /usr/local, or $PREFIX. DESTDIR stands before every path.
# A file that was changed since is left, and said. Folders go where install.sh made them and nothing is left in
# them. Repositories are not touched: 'git aynig trust --revoke' and 'git aynig gc' are for these.
set -eu

fail() {
    printf 'error: %s\n' "$1" >&2
    if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
    exit 1
}

# One function: the whole script is read before the script itself is removed.
main() {
    here=$(CDPATH='' cd -- "$(dirname -- "$0")" && pwd)
    destdir=${DESTDIR:-}
    prefix=${PREFIX:-/usr/local}
    tab=$(printf '\t')
    if [ -f "$here/manifest" ]; then
        prefix=${here%/share/git-aynig}
        prefix=${prefix#"$destdir"}
    fi
    while [ $# -gt 0 ]; do
        case $1 in
        --prefix=*) prefix=${1#*=} ;;
        --prefix)
            [ $# -gt 1 ] || fail "'--prefix' wants a value"
            prefix=$2
            shift
            ;;
        -h | --help)
            sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0"
            exit 0
            ;;
        *) fail "'$1' is no option" "$0 --help" ;;
        esac
        shift
    done
    prefix=${prefix%/}
    manifest=$destdir$prefix/share/git-aynig/manifest
    [ -f "$manifest" ] || fail "nothing was installed below '$destdir$prefix'" "uninstall.sh --prefix DIR"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    cp "$manifest" "$work/manifest"
    status=0
    grep "^f$tab" "$work/manifest" | cut -f 3 | LC_ALL=C sort -u >"$work/files"
    while IFS= read -r path; do
        # A copy that was cut short.
        rm -f -- "$destdir$path.aside"
        [ -f "$destdir$path" ] || continue
        if grep -qxF -- "f$tab$(cksum <"$destdir$path")$tab$path" "$work/manifest"; then
            rm -f -- "$destdir$path"
        else
            printf "left: '%s' was changed since\n" "$destdir$path" >&2
            status=1
        fi
    done <"$work/files"
    rm -f -- "$manifest" "$manifest.aside"
    # The deepest first.
    { grep "^d$tab" "$work/manifest" || :; } | cut -f 3 | LC_ALL=C sort -r >"$work/folders"
    while IFS= read -r path; do
        rmdir -- "$destdir$path" 2>/dev/null || :
    done <"$work/folders"
    if [ "$status" = 0 ]; then printf 'Removed what was installed below %s\n' "$destdir$prefix"; fi
    exit "$status"
}

main "$@"
