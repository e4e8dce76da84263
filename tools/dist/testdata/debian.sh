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
healthy() { # waits until the service serves
	n=0
	until as_the_service /usr/bin/understudy healthcheck -c /etc/understudy/understudy.yaml >/dev/null 2>&1; do
		n=$((n + 1))
		[ $n -lt 100 ] && kill -0 "$pid" || { cat /mnt/out /mnt/err; exit 1; }
		sleep 0.1
	done
	/usr/bin/understudy healthcheck -c /etc/understudy/understudy.yaml
}
request() { # sends one, and expects the upstream's answer
	perl -MIO::Socket::INET -e '
		my $s = IO::Socket::INET->new(PeerAddr => "127.0.0.1:$ARGV[0]", Timeout => 20) or die "connect: $!";
		my $b = q({"model":"auto","messages":[{"role":"user","content":"hi"}]});
		print $s "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: " . length($b) . "\r\n\r\n$b";
		local $/; my $a = <$s>; print $a =~ /from the real upstream/ ? "answered\n" : die "got $a\n";' "$port"
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
YAML
mkdir -p /var/lib/understudy && chown understudy:understudy /var/lib/understudy && chmod 0700 /var/lib/understudy # systemd does that
begin
request
expect 'there is state' ls /var/lib/understudy/state-*.json

echo '# upgrade, under a systemctl that knows the service'"'"'s process'
mkdir -p /run/systemd/system
cat >/usr/local/bin/systemctl <<SH
#!/bin/sh
echo "\$*" >>/mnt/systemctl
case \$1 in show) echo $pid ;; esac
SH
chmod 0755 /usr/local/bin/systemctl
PATH=/usr/local/bin:$PATH dpkg -i new.deb
expect 'systemd reads the units anew' grep -qx daemon-reload /mnt/systemctl
expect 'the program is the new one' sh -c 'understudy version | grep -q " 1\.2\.3 "' # the same bytes, packed as 1.3.0
expect 'dpkg knows the new version' sh -c 'dpkg-query -W -f "\${Version}" understudy | grep -qx 1.3.0'
expect 'the configuration is the administrator'"'"'s' grep -q "port: $port" /etc/understudy/understudy.yaml
expect 'it is still the service'"'"'s alone' owned /etc/understudy/understudy.yaml 'understudy:understudy 600'
ended "$pid" # it has handed over
expect 'the state is still there' ls /var/lib/understudy/state-*.json
healthy >/mnt/health
cat /mnt/health
expect 'what was counted is counted on' grep -q ', 1 request$' /mnt/health
request
next=$(pidof understudy)
expect 'a new process serves' [ "$next" != "$pid" ]
kill -TERM "$next"
while kill -0 "$next" 2>/dev/null; do sleep 0.1; done # bounded by the test's own time

echo '# remove'
dpkg -r understudy
refuse 'the program is there' [ -e /usr/bin/understudy ]
expect 'the configuration is kept' [ -e /etc/understudy/understudy.yaml ]
expect 'the state is kept' [ -e /var/lib/understudy ]
expect 'the user is kept' getent passwd understudy

echo '# purge'
dpkg -P understudy
refuse 'the configuration is there' [ -e /etc/understudy ]
refuse 'the state is there' [ -e /var/lib/understudy ]
refuse 'the user is there' getent passwd understudy
refuse 'anything else of it is there' sh -c 'find / -xdev -path /mnt -prune -o -path "*/understudy*" -path "/usr/*" -print | grep -v "^/usr/local/" | grep .'
echo 'all of it went well'
