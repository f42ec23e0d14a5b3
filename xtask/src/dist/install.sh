#!/bin/sh
# Installs tgp @VERSION@ from an archive of a release.
#
#   TGP_BASE_URL     the folder with the archives and SHA256SUMS (required): http://, https:// or file://
#   TGP_INSTALL_DIR  where the program goes (default: ~/.local/bin)
#   TGP_TARGET       the platform (default: this machine's)
set -eu

version='@VERSION@'

fail() {
    echo "install.sh: $1" >&2
    exit 1
}

has() {
    command -v "$1" >/dev/null 2>&1
}

# download NAME: writes the file of that name to the temporary folder.
download() {
    case $base_url in
    file://*)
        cp "${base_url#file://}/$1" "$folder/$1" 2>/dev/null || fail "cannot read $base_url/$1"
        ;;
    http://* | https://*)
        if has curl; then
            curl --fail --silent --show-error --location --output "$folder/$1" "$base_url/$1" ||
                fail "cannot download $base_url/$1"
        elif has wget; then
            wget -q -O "$folder/$1" "$base_url/$1" || fail "cannot download $base_url/$1"
        else
            fail "curl or wget is needed to download $base_url/$1"
        fi
        ;;
    *)
        fail "invalid TGP_BASE_URL \`$base_url\`: expected http://, https:// or file://"
        ;;
    esac
}

# checksum FILE: prints its SHA-256.
checksum() {
    if has sha256sum; then
        sha256sum "$1" | cut -d ' ' -f 1
    elif has shasum; then
        shasum -a 256 "$1" | cut -d ' ' -f 1
    elif has openssl; then
        openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
    else
        fail 'sha256sum, shasum or openssl is needed to check the archive'
    fi
}

# Prints the platforms for this machine, the best one first.
targets() {
    case "$(uname -s) $(uname -m)" in
    'Linux x86_64' | 'Linux amd64') echo 'x86_64-unknown-linux-musl x86_64-unknown-linux-gnu' ;;
    'Linux aarch64' | 'Linux arm64') echo 'aarch64-unknown-linux-musl aarch64-unknown-linux-gnu' ;;
    'Darwin arm64') echo aarch64-apple-darwin ;;
    *) fail "no archive is made for $(uname -s) on $(uname -m): expected Linux on x86_64 or aarch64, or macOS on arm64" ;;
    esac
}

# expected NAME: prints the checksum that SHA256SUMS has for a file.
expected() {
    return_character=$(printf '\r')
    # The last line counts without its end, too.
    while read -r sum name || [ -n "$name" ]; do
        name=${name%"$return_character"}
        # A star marks a file that is not text.
        if [ "${name#\*}" = "$1" ]; then
            echo "$sum"
            return
        fi
    done <"$folder/SHA256SUMS"
}

main() {
    base_url=${TGP_BASE_URL:-}
    base_url=${base_url%/}
    [ -n "$base_url" ] || fail 'set TGP_BASE_URL to the address of the folder with the archives'
    if [ -z "${TGP_INSTALL_DIR:-}" ]; then
        [ -n "${HOME:-}" ] || fail 'set TGP_INSTALL_DIR: there is no HOME'
        TGP_INSTALL_DIR=$HOME/.local/bin
    fi
    case ${TGP_TARGET:-} in
    *[!a-z0-9_-]*) fail "TGP_TARGET is no platform: expected a name such as x86_64-unknown-linux-musl" ;;
    esac
    candidates=${TGP_TARGET:-$(targets)}
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
    trap 'exit 130' INT
    trap 'exit 143' TERM

    download SHA256SUMS
    sum=
    for target in $candidates; do
        name=tgp-$version-$target
        sum=$(expected "$name.tar.gz")
        [ -z "$sum" ] || break
    done
    [ -n "$sum" ] || fail "SHA256SUMS of $base_url has no archive of tgp $version for $candidates"
    download "$name.tar.gz"
    found=$(checksum "$folder/$name.tar.gz")
    [ "$found" = "$sum" ] ||
        fail "the checksum of $name.tar.gz is wrong: expected $sum, found $found; nothing was installed"

    gzip -dc "$folder/$name.tar.gz" | tar -xf - -C "$folder" || fail "cannot unpack $name.tar.gz"
    mkdir -p "$TGP_INSTALL_DIR" || fail "cannot create $TGP_INSTALL_DIR"
    [ -f "$folder/$name/tgp" ] || fail "$name.tar.gz has no program"
    [ ! -d "$TGP_INSTALL_DIR/tgp" ] || fail "$TGP_INSTALL_DIR/tgp is a directory; nothing was installed"
    # Beside its place first: a running program keeps its file, and an interruption leaves the old one.
    fresh=$(mktemp "$TGP_INSTALL_DIR/.tgp.XXXXXX") || fail "cannot write to $TGP_INSTALL_DIR"
    trap 'rm -rf "$folder" "$fresh"' EXIT
    cp "$folder/$name/tgp" "$fresh" && chmod 755 "$fresh" && mv -f "$fresh" "$TGP_INSTALL_DIR/tgp" ||
        fail "cannot write to $TGP_INSTALL_DIR"
    echo "installed tgp $version: $TGP_INSTALL_DIR/tgp"
    case :${PATH:-}: in
    *":$TGP_INSTALL_DIR:"*) echo 'next: tgp demo' ;;
    *) echo "next: put it on your path with  export PATH=\"$TGP_INSTALL_DIR:\$PATH\"  and run  tgp demo" ;;
    esac
}

# All of it is read before any of it runs: half a download does nothing.
main
