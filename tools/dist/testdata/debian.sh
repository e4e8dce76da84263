# The life of the package, in a root directory of its own: install, look, serve, upgrade,
# remove, purge. $1 is the URL of an upstream. systemd does not run here, so the unit's
# command line is run as the unit's user.
upstream=$1
cd /mnt/debs
export DEBIAN_FRONTEND=noninteractive PATH=/usr/sbin:/usr/bin:/sbin:/bin

expect() { # what, command...: it must succeed
	what=$1
	shift
	"$@" || { echo "NOT SO: $what"; exit 1; }
	echo "so it is: $what"
}
refuse() { # what, command...: it must fail
	what=$1
	shift
	if "$@"; then
		echo "NOT SO: $what"
		exit 1
	fi
	echo "it is not so: $what"
}
owned() { [ "$(stat -c '%U:%G %a' "$1")" = "$2" ]; }
unit() { # the last value of a setting of the unit and what stands beside it
	cat /usr/lib/systemd/system/understudy.service /usr/lib/systemd/system/understudy.service.d/*.conf | sed -n "s/^$1=//p" | tail -n 1
}
as_the_service() { setpriv --reuid="$(unit User)" --regid="$(unit Group)" --clear-groups --no-new-privs -- env -i XDG_STATE_HOME=/var/lib HOME=/ "$@"; }
begin() { # runs the service
	# Written out: of a function in the background the shell knows its own process only.
	setpriv --reuid="$(unit User)" --regid="$(unit Group)" --clear-groups --no-new-privs -- env -i XDG_STATE_HOME=/var/lib HOME=/ $(unit ExecStart) >/mnt/out 2>/mnt/err &
	pid=$!
	healthy
}
healthy() {
	until_so 'the service serves' as_the_service /usr/bin/understudy healthcheck -c /etc/understudy/understudy.yaml
	/usr/bin/understudy healthcheck -c /etc/understudy/understudy.yaml
}
request() { # model, stream or not: sends one, and prints the answer as it comes
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 20) or die "connect: $!";
		my $b = qq({"model":"$ARGV[1]","stream":$ARGV[2],"messages":[{"role":"user","content":"hi"}]});
		print $s "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " . length($b) . "\r\n\r\n$b";
		$| = 1; my $a; print $a while sysread $s, $a, 4096' "$port" "$1" "$2"
}
until_so() { # what, command...: waits for it
	what=$1
	shift
	n=0
	until "$@" >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 300 ] || { echo "NEVER SO: $what"; cat /mnt/out /mnt/err; exit 1; }
		sleep 0.1
	done
	echo "so it is: $what"
}
ended() { # waits for a process of the service that is to end well
	wait "$1" || { echo "it ends with $?"; cat /mnt/err; exit 1; }
}

echo '# install'
dpkg -i old.deb
expect 'the program says its version' sh -c 'understudy version | grep -q " 1\.2\.3 "'
expect 'there is a user' getent passwd understudy
expect 'the configuration is the service'"'"'s alone' owned /etc/understudy/understudy.yaml 'understudy:understudy 600'
expect 'so is its directory' owned /etc/understudy 'understudy:understudy 750'
expect 'keys are root'"'"'s' owned /etc/understudy/keys 'root:root 700'
refuse 'a service that is not configured starts' as_the_service $(unit ExecStart)
code=0
as_the_service $(unit ExecStart) 2>/mnt/err || code=$?
cat /mnt/err
expect 'it ends with the code that systemd does not restart' [ "$code" = "$(unit RestartPreventExitStatus)" ]

echo '# configure and serve'
port=$(perl -MIO::Socket::INET -e 'print IO::Socket::INET->new(LocalAddr => "127.0.0.1", Listen => 1)->sockport')
cat >/etc/understudy/understudy.yaml <<YAML
server: {port: $port, admin: "off"}
virtual_models:
  auto:
    - {base_url: "$upstream", auth_style: none, model: m}
  held:
    - {base_url: "$upstream", auth_style: none, model: held}
YAML
mkdir -p /var/lib/understudy && chown understudy:understudy /var/lib/understudy && chmod 0700 /var/lib/understudy # systemd does that
begin
request auto false >/mnt/answer
expect 'it answers' grep -q 'from the real upstream' /mnt/answer
until_so 'there is state' sh -c 'ls /var/lib/understudy/state-*.json' # it is written behind
request held true >/mnt/stream &
client=$!
until_so 'a stream runs' grep -q 'from the real ' /mnt/stream

echo '# upgrade, under a systemctl that knows the service'"'"'s process, while the stream runs'
mkdir -p /run/systemd/system
echo $pid >/mnt/main-pid
cat >/usr/local/bin/systemctl <<SH
#!/bin/sh
echo "\$*" >>/mnt/systemctl
case \$1 in show) cat /mnt/main-pid ;; esac
SH
chmod 0755 /usr/local/bin/systemctl
PATH=/usr/local/bin:$PATH dpkg -i new.deb
expect 'systemd reads the units anew' grep -qx daemon-reload /mnt/systemctl
expect 'the program is the new one' sh -c 'understudy version | grep -q " 1\.3\.0 "'
expect 'dpkg knows the new version' sh -c 'dpkg-query -W -f "\${Version}" understudy | grep -qx 1.3.0'
expect 'the configuration is the administrator'"'"'s' grep -q "port: $port" /etc/understudy/understudy.yaml
expect 'it is still the service'"'"'s alone' owned /etc/understudy/understudy.yaml 'understudy:understudy 600'
until_so 'a new process serves' sh -c 'for p in $(pidof understudy); do [ "$(readlink /proc/$p/exe)" != /usr/bin/understudy ] || echo $p >/mnt/next; done; [ -s /mnt/next ]'
next=$(cat /mnt/next)
refuse 'it is the former one' [ "$next" = "$pid" ]
healthy >/mnt/health
cat /mnt/health
expect 'what was counted is counted on' grep -q ', 1 request$' /mnt/health
request auto false >/mnt/answer
expect 'it answers' grep -q 'from the real upstream' /mnt/answer
expect 'the former process goes on for the stream' kill -0 "$pid"
perl -MIO::Socket::INET -e 'my ($at) = $ARGV[0] =~ m(//(.*)); my $s = IO::Socket::INET->new($at) or die $!; print $s "GET /finish HTTP/1.0\r\n\r\n"; 1 while <$s>' "$upstream"
wait "$client"
expect 'the stream was not cut' sh -c 'grep -q "upstream, " /mnt/stream && grep -q "^data: .DONE.$" /mnt/stream && tail -c 5 /mnt/stream | tr "\r\n" "rn" | grep -qx 0rnrn'
ended "$pid"
request auto false >/mnt/answer
expect 'the new one answers alone' grep -q 'from the real upstream' /mnt/answer
expect 'the state is still there' sh -c 'ls /var/lib/understudy/state-*.json'
echo "$next" >/mnt/main-pid

echo '# remove'
cat >>/usr/local/bin/systemctl <<SH
case \$1 in disable) kill -TERM $next; while kill -0 $next 2>/dev/null; do sleep 0.1; done ;; esac
SH
PATH=/usr/local/bin:$PATH dpkg -r understudy
expect 'what ran was stopped' grep -qx 'disable --now understudy.socket understudy.service' /mnt/systemctl
refuse 'anything of it runs' pidof understudy
refuse 'the program is there' [ -e /usr/bin/understudy ]
expect 'the configuration is kept' [ -e /etc/understudy/understudy.yaml ]
expect 'the state is kept' [ -e /var/lib/understudy ]
expect 'the user is kept' getent passwd understudy

echo '# purge'
PATH=/usr/local/bin:$PATH dpkg -P understudy
refuse 'the configuration is there' [ -e /etc/understudy ]
refuse 'the state is there' [ -e /var/lib/understudy ]
refuse 'the user is there' getent passwd understudy
refuse 'anything else of it is there' sh -c 'find /usr /etc /var /run -xdev -path "*understudy*" | grep -v "^/usr/local/" | grep .'
echo 'all of it went well'
