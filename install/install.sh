#!/bin/sh
# Copies git-aynig, its manual pages, completions and systemd units below a prefix.
#
#   install/install.sh [--prefix DIR] [--binary FILE]
#
# The prefix is /usr/local, or $PREFIX; for one user, --prefix "$HOME/.local". The binary is the one that
# 'cargo build --release' made, with '--target' (as a static one is) or without: the newer one that runs here. DESTDIR, where set, stands before every path, as packagers expect.
#
# What is made is noted in <prefix>/share/git-aynig/manifest before it is made, so that uninstall.sh undoes
# exactly that, even after a crash. A file that is there and was not noted is never overwritten.
set -eu
umask 022

top=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd)
prefix=${PREFIX:-/usr/local}
binary=
destdir=${DESTDIR:-}
tab=$(printf '\t')

fail() {
    printf 'error: %s\n' "$1" >&2
    if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
    exit 1
}

while [ $# -gt 0 ]; do
    case $1 in
    --prefix=*) prefix=${1#*=} ;;
    --binary=*) binary=${1#*=} ;;
    --prefix | --binary)
        [ $# -gt 1 ] || fail "'$1' wants a value"
        if [ "$1" = --prefix ]; then prefix=$2; else binary=$2; fi
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

case $prefix in
*"$tab"* | *"
"*) fail "the prefix holds a tab or a line feed" ;;
/*) prefix=${prefix%/} ;;
*) fail "the prefix '$prefix' is not absolute" "--prefix \"\$PWD/$prefix\"" ;;
esac
built=$binary
if [ -z "$binary" ]; then
    target=${CARGO_TARGET_DIR:-$top/target}
    built=$target/release/git-aynig
    for other in "$target"/*/release/git-aynig; do
        # Of another machine's kind it does not run here.
        if [ -f "$other" ] && "$other" --version >/dev/null 2>&1; then
            if ! [ -f "$built" ] || [ -n "$(find "$other" -newer "$built")" ]; then built=$other; fi
        fi
    done
fi
[ -f "$built" ] || fail "there is no binary '$built'" "cargo build --release, or --binary FILE"

# Each file: where from, where to below the prefix, its mode.
files() {
    printf '%s\t%s\t%s\n' "$built" bin/git-aynig 755
    # The program of the page, where it was built too.
    if [ -f "${built%/*}/git-aynig-serve" ]; then
        printf '%s\t%s\t%s\n' "${built%/*}/git-aynig-serve" bin/git-aynig-serve 755
    fi
    for section in 1 7; do
        for page in "$top"/man/*."$section"; do
            if [ -f "$page" ]; then
                printf '%s\t%s\t%s\n' "$page" "share/man/man$section/${page##*/}" 644
            fi
        done
    done
    completions=$top/install/completions/git-aynig
    printf '%s\t%s\t%s\n' "$completions.bash" share/bash-completion/completions/git-aynig 644
    printf '%s\t%s\t%s\n' "$completions.zsh" share/zsh/site-functions/_git-aynig 644
    printf '%s\t%s\t%s\n' "$completions.fish" share/fish/vendor_completions.d/git-aynig.fish 644
    for unit in "$top"/install/systemd/*; do
        printf '%s\t%s\t%s\n' "$unit" "share/systemd/user/${unit##*/}" 644
    done
    printf '%s\t%s\t%s\n' "$top/install/uninstall.sh" share/git-aynig/uninstall.sh 755
}

manifest=$destdir$prefix/share/git-aynig/manifest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP
if [ -f "$manifest" ]; then cp "$manifest" "$work/old"; else : >"$work/old"; fi
files >"$work/files"

# Files first, with what they will hold; then folders that are not there yet, and those made by us before.
while IFS="$tab" read -r from to mode; do
    path=$prefix/$to
    if [ -e "$destdir$path" ] || [ -h "$destdir$path" ]; then
        cut -f 3 "$work/old" | grep -qxF -- "$path" || fail "'$destdir$path' is there, and is not ours" "rm '$destdir$path'"
    fi
    printf 'f\t%s\t%s\n' "$(cksum <"$from")" "$path"
    folder=${path%/*}
    while [ -n "$folder" ] && ! [ -d "$destdir$folder" ]; do
        printf 'd\t-\t%s\n' "$folder"
        folder=${folder%/*}
    done
    if [ -n "$destdir" ] && ! [ -d "$destdir" ]; then printf 'd\t-\t/\n'; fi
done <"$work/files" >"$work/lines"
grep "^d$tab" "$work/old" >>"$work/lines" || :
LC_ALL=C sort -u "$work/lines" >"$work/new"

# Until all is copied, old and new content are both ours.
mkdir -p "${manifest%/*}"
LC_ALL=C sort -u "$work/old" "$work/new" >"$manifest.aside"
mv -f "$manifest.aside" "$manifest"
while IFS="$tab" read -r from to mode; do
    path=$destdir$prefix/$to
    mkdir -p "${path%/*}"
    cp "$from" "$path.aside"
    chmod "$mode" "$path.aside"
    mv -f "$path.aside" "$path"
done <"$work/files"
# What an older version had and this one has not.
cut -f 3 "$work/new" >"$work/kept"
grep "^f$tab" "$work/old" | cut -f 3 | { grep -vxF -f "$work/kept" || :; } | while IFS= read -r path; do
    rm -f -- "$destdir$path"
done
cp "$work/new" "$manifest.aside"
mv -f "$manifest.aside" "$manifest"

printf 'Installed %s\n' "$destdir$prefix/bin/git-aynig"
printf 'It is %s\n' "$built"
printf 'To remove it: sh %s\n' "$prefix/share/git-aynig/uninstall.sh"
case ":$PATH:" in
*":$prefix/bin:"*) ;;
*) if [ -z "$destdir" ]; then printf 'hint: put %s on PATH, then git finds it\n' "$prefix/bin" >&2; fi ;;
esac
