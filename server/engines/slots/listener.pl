# Runs briefly inside a box's network namespace: opens a listening socket, passes it to the server over the channel of
# Node's `child_process`, and exits when the server has it. Node has no setns, so it cannot open the socket itself. This
# script is in Perl, because Perl starts forty times faster than Node, and the script runs once for each browser. The
# message has the format that Node uses to pass handles: a line of JSON, with the descriptor as ancillary data
# (SCM_RIGHTS).
use strict;
use warnings;

my ($port, $sendmsg) = @ARGV;

# Values of <sys/socket.h> on Linux, the same on all supported architectures. Loading the module Socket would take
# longer than the rest of the script.
my ($AF_INET, $SOCK_STREAM, $SOL_SOCKET, $SO_REUSEADDR, $SCM_RIGHTS) = (2, 1, 1, 2, 1);
my $BACKLOG = 511;
# Limits the lifetime of this helper if the server dies before it takes the socket.
my $LIFETIME_S = 15;
# A helper of a server that was killed during the handover may hold the port for a while.
my ($RETRY_S, $TRIES_MAX) = (0.05, 100);

alarm $LIFETIME_S;
open(my $channel, '+<&=', $ENV{NODE_CHANNEL_FD}) or die "no channel: $!\n";

sub fail {
  my ($what) = @_;
  $what =~ s/["\\]/'/g;
  syswrite $channel, qq({"failed":"$what"}\n);
  exit 1;
}

socket(my $listener, $AF_INET, $SOCK_STREAM, 0) or fail("socket: $!");
setsockopt($listener, $SOL_SOCKET, $SO_REUSEADDR, 1) or fail("setsockopt: $!");
my $tries = 1;
until (bind($listener, pack('S n C4 x8', $AF_INET, $port, 127, 0, 0, 1))) {
  fail("bind: $!") if $tries++ == $TRIES_MAX;
  select(undef, undef, undef, $RETRY_S);
}
listen($listener, $BACKLOG) or fail("listen: $!");

my $said = qq({"cmd":"NODE_HANDLE","type":"net.Server","msg":{"listening":true}}\n);
# struct cmsghdr with one descriptor, struct iovec, struct msghdr; 64 bits.
my $rights = pack('L! i i i x4', 20, $SOL_SOCKET, $SCM_RIGHTS, fileno $listener);
my $vector = pack('P L!', $said, length $said);
my $message = pack('P L x4 P L! P L! i x4', undef, 0, $vector, 1, $rights, length $rights, 0);
my $sent = syscall($sendmsg + 0, fileno $channel, $message, 0);
fail("sendmsg: $!") if $sent != length $said;

my $answer = '';
while (index($answer, 'taken') < 0) { sysread($channel, $answer, 4096, length $answer) or last }
