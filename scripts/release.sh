# To be sourced, in the root of the repository: what is released. VERSION, ARCHITECTURE, RELEASE_FILES, and
# SOURCE_DATE_EPOCH, the time of the commit, which every file of a release bears.

BUILT=.build/release
RELEASE_FILES=.build/release-files
read -r _ VERSION < <($BUILT/urlsessiond --version)
ARCHITECTURE=$(dpkg --print-architecture)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || date --reference=CHANGELOG.md +%s)}
export SOURCE_DATE_EPOCH
DEB=$RELEASE_FILES/urlsessiond_$VERSION-1_$ARCHITECTURE.deb
umask 022
