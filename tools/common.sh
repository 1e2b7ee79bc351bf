# SPDX-License-Identifier: BSD-3-Clause
# Shared by tools/demo, tools/test and .ci/run, which source it from the top of the tree. Builds go
# to ./build.

name=${0##*/}
cpus=$(nproc)
tests_at_once=$((2 * cpus)) # they wait more than they compute

die()
{
	printf '%s: %s\n' "$name" "$*" >&2
	exit 1
}

# no_arguments ARGUMENTS...: for scripts without arguments.
no_arguments()
{
	[ $# = 0 ] || {
		echo "$name: no arguments are expected: $*" >&2
		exit 2
	}
}

# quietly WHAT COMMAND...: writes the output to build/WHAT.log; if the command fails, prints one
# line with the first error in it.
quietly()
{
	log=build/$1.log
	what=$1
	shift
	("$@") > "$log" 2>&1 < /dev/null && return
	complaint=$(grep -E -m1 '(error:|^E: |atal|annot |nable to|not found|is missing|\*\*\*)' \
		"$log" || tail -n 1 "$log")
	die "$what failed: ${complaint:-no output} (see $log)"
}

# packages USE...: the packages listed for any of these uses.
packages()
{
	for use; do
		sed -n "s/^$use	*//p" tools/packages
	done
}

# need USE...: installs what is missing. On a system without dpkg, configure finds out.
need()
{
	command -v dpkg-query > /dev/null || return 0
	missing=
	for package in $(packages "$@"); do
		case $(dpkg-query -W -f '${db:Status-Status}' "$package" 2> /dev/null) in
		installed) ;;
		*) missing="$missing $package" ;;
		esac
	done
	[ -n "$missing" ] || return 0
	as_root=
	if [ "$(id -u)" != 0 ]; then
		command -v sudo > /dev/null ||
			die "packages are missing, and there is no sudo; as root:" \
				"apt-get install$missing"
		as_root=sudo
	fi
	echo "Installing$missing"
	mkdir -p build
	quietly apt-update $as_root apt-get -q update
	quietly apt-install $as_root env DEBIAN_FRONTEND=noninteractive \
		apt-get -qy -o DPkg::Lock::Timeout=120 install --no-install-recommends $missing
}

# What the result of configure depends on: if it changes, configure runs again.
environment()
{
	! command -v dpkg-query > /dev/null ||
		dpkg-query -W -f '${Package} ${Version}\n' $(packages build test ci bench) \
			2> /dev/null || :
}

configure_build()
{
	cd build
	../configure -q
}

# Bootstraps and configures if necessary, in ./build, then makes the library and the examples. Once
# there is a Makefile, its own rules handle changes of its sources.
build()
{
	[ ! -e config.status ] || die "this tree is configured in place; 'make distclean' first"
	mkdir -p build
	environment > build/environment.new
	if [ ! -e build/Makefile ]; then
		if [ ! -e Makefile.in ] || [ -n "$(find configure.ac Makefile.am m4 ./*/local.mk \
			-newer Makefile.in)" ]; then
			echo "Making ./configure"
			quietly bootstrap ./bootstrap
		fi
	fi
	if [ ! -e build/Makefile ] || ! cmp -s build/environment build/environment.new; then
		echo "Configuring in ./build"
		quietly configure configure_build
	fi
	mv build/environment.new build/environment
	echo "Building in ./build"
	quietly make make -C build -j "$cpus"
}

# tally LOG: prints what `make check' counted there, and sets passed, failed and skipped. No test at
# all is a failure.
tally()
{
	count()
	{
		sed -n "s/^# $1: *//p" "$log" | awk '{ n += $1 } END { print n + 0 }'
	}
	log=$1
	passed=$(($(count PASS) + $(count XFAIL)))
	failed=$(($(count FAIL) + $(count XPASS) + $(count ERROR)))
	skipped=$(count SKIP)
	[ $((passed + failed)) != 0 ] || failed=1
	echo "$passed passed, $failed failed, $skipped skipped"
}
