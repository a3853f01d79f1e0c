# SPDX-License-Identifier: Apache-2.0 OR GPL-2.0-only
# The Debian revision of a package names the release that it was built on, as Debian's own do: that
# of an older release has the lower version, and a plain -1, of Debian itself, is above all.

package_revision() {  # package_revision OS-RELEASE: 1~deb13u1, 1~ubuntu24.04.1
  # shellcheck disable=SC1090
  (. "$1"
    case ${ID:-}/${VERSION_ID:-} in
      */) echo 1 ;;  # what is not released yet has no number
      debian/*) echo "1~deb${VERSION_ID}u1" ;;
      *) echo "1~$ID$VERSION_ID.1" ;;
    esac)
}
