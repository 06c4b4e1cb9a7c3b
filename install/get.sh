#!/bin/sh
# Fetches git-aynig for this machine, compares its checksum, and installs it below a prefix.
#
#   install/get.sh --from URL [--version V] [--sha256 HEX] [--prefix DIR]
#
# The place named by --from (a URL, or a folder) has what install/package made. The archive of this machine's
# architecture is compared with the line of SHA256SUMS there, and with --sha256 where that is given: the list
# comes from the same place as the archive, so it shows a broken transfer, and a sum that you had elsewhere shows
# a changed one. Nothing is unpacked before that, and nothing is installed where it differs. The prefix is
# install.sh's: /usr/local, or --prefix "$HOME/.local" for one user.
set -eu

fail() {
    printf 'error: %s\n' "$1" >&2
    if [ $# -gt 1 ]; then printf 'hint: %s\n' "$2" >&2; fi
    exit 1
}

fetch() { # <name> <file>
    case $from in
    http://* | https://*)
        if command -v curl >/dev/null 2>&1; then
            curl -fsSL --proto '=https,http' -o "$2" "$from/$1" || fail "cannot fetch '$from/$1'"
        elif command -v wget >/dev/null 2>&1; then
            wget -q -O "$2" "$from/$1" || fail "cannot fetch '$from/$1'"
        else
            fail "there is neither curl nor wget" "fetch it by hand, and name its folder: --from DIR"
        fi
        ;;
    *) cp -- "$from/$1" "$2" 2>/dev/null || fail "there is no '$from/$1'" ;;
    esac
}

sum() { # <file>
    if command -v sha256sum >/dev/null 2>&1; then
        sha256sum <"$1" | cut -d ' ' -f 1
    elif command -v shasum >/dev/null 2>&1; then
        shasum -a 256 <"$1" | cut -d ' ' -f 1
    else
        fail "there is neither sha256sum nor shasum"
    fi
}

# One function: the whole script is read before any of it runs, also where it comes through a pipe.
main() {
    from='' version='' wanted='' prefix=''
    while [ $# -gt 0 ]; do
        case $1 in
        --from | --version | --sha256 | --prefix)
            [ $# -gt 1 ] || fail "'$1' wants a value"
            case $1 in
            --from) from=${2%/} ;;
            --version) version=$2 ;;
            --sha256) wanted=$2 ;;
            --prefix) prefix=$2 ;;
            esac
            shift
            ;;
        -h | --help)
            sed -n '2,/^set -eu/s/^# \{0,1\}//p' "$0" | sed '$d'
            exit 0
            ;;
        *) fail "'$1' is no option" "$0 --help" ;;
        esac
        shift
    done
    [ -n "$from" ] || fail "no place to fetch from is named" "$0 --from URL"
    case $(uname -s)/$(uname -m) in
    Linux/x86_64 | Linux/amd64) arch=x86_64 ;;
    Linux/aarch64 | Linux/arm64) arch=aarch64 ;;
    *) fail "no binary is made for $(uname -s) on $(uname -m)" "cargo install --path ., from the sources" ;;
    esac
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM HUP
    fetch SHA256SUMS "$work/SHA256SUMS"
    if [ -z "$version" ]; then
        version=$(sed -n "s/^[0-9a-f]\{64\}  git-aynig-\([0-9A-Za-z.+~-]*\)-$arch-linux\.tar\.gz\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
    fi
    name=git-aynig-$version-$arch-linux
    listed=$(sed -n "s/^\([0-9a-f]\{64\}\)  $(printf '%s' "$name.tar.gz" | sed 's/[.[*^$]/\\&/g')\$/\1/p" "$work/SHA256SUMS" | tail -n 1)
    [ -n "$listed" ] || fail "'$from/SHA256SUMS' names no '$name.tar.gz'"
    fetch "$name.tar.gz" "$work/archive"
    found=$(sum "$work/archive")
    [ "$found" = "$listed" ] || fail "the checksum of '$name.tar.gz' is not the listed one: nothing was installed" "fetch it once more; if it stays so, tell the people who made it"
    if [ -n "$wanted" ] && [ "$found" != "$wanted" ]; then
        fail "the checksum of '$name.tar.gz' is $found, not the one that you named: nothing was installed"
    fi
    tar -xzf "$work/archive" -C "$work"
    if [ -n "$prefix" ]; then set -- --prefix "$prefix"; else set --; fi
    sh "$work/$name/install/install.sh" --binary "$work/$name/bin/git-aynig" "$@"
}
main "$@"
