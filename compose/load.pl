#!/usr/bin/env perl
# A little load for the demo: calls and batches over a kept-alive connection and a WebSocket, swelling and ebbing every
# two minutes, so that ceilings are met and left again. load.pl HOST PORT; PEAK is the most calls a second.
use strict;
use warnings;
use IO::Socket::INET;

my ($host, $port) = @ARGV;
my $peak = $ENV{PEAK} || 60;
my ($socket, $id, %codes) = (undef, 0);
my @methods = (
    ['eth_blockNumber', '[]'], ['eth_chainId', '[]'], ['eth_gasPrice', '[]'],
    ['eth_getBalance', '["0x0000000000000000000000000000000000000001","latest"]'],
    ['eth_getBlockByNumber', '["latest",false]'],
);
my @chains = ('demo', 'demo', 'demo', 'demo-l2', 'demo-small');

sub call {
    my ($method, $params) = @{$methods[rand @methods]};
    $id++;
    return qq({"jsonrpc":"2.0","id":$id,"method":"$method","params":$params});
}

sub connected {
    return $socket if $socket && $socket->connected;
    $socket = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => 5);
    return $socket;
}

# Sends one request and reads its answer; the status, or 0 when there was none.
sub ask {
    my ($chain, $body) = @_;
    my $to = connected() or return 0;
    my $length = length $body;
    # Some calls are those of a client with a limit of its own (configs/clients-demo.json).
    my $key = rand() < 0.1 ? "X-Api-Key: demo-visitor\r\n" : '';
    print $to "POST /$chain HTTP/1.1\r\nHost: $host\r\n${key}Content-Type: application/json\r\nContent-Length: $length\r\n\r\n$body"
        or return lost();
    $to->flush;
    my $line = <$to>;
    return lost() unless defined $line && $line =~ m{^HTTP/1\.1 (\d+)};
    my ($status, $left, $close) = ($1, 0, 0);
    while (defined($line = <$to>) && $line ne "\r\n") {
        $left = $1 if $line =~ /^content-length:\s*(\d+)/i;
        $close = 1 if $line =~ /^connection:\s*close/i;
        $left = -1 if $line =~ /^transfer-encoding:\s*chunked/i;
    }
    return lost($status) if $left < 0;
    while ($left > 0) {
        my $got = read($to, my $part, $left) or return lost();
        $left -= $got;
    }
    lost() if $close;
    return $status;
}

# A WebSocket, opened anew when it ended.
my $socketed;

sub upgraded {
    return $socketed if $socketed;
    my $to = IO::Socket::INET->new(PeerAddr => $host, PeerPort => $port, Proto => 'tcp', Timeout => 5) or return;
    print $to "GET /demo HTTP/1.1\r\nHost: $host\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"
        . "Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
    my $first = <$to>;
    return unless defined $first && $first =~ / 101 /;
    while (defined(my $line = <$to>)) { last if $line eq "\r\n" }
    return $socketed = $to;
}

# One call as one masked frame (RFC 6455, 5.2; short enough for a length of 16 bits); what came back, or nothing.
sub ask_socket {
    my ($body) = @_;
    my $to = upgraded() or return 'no socket';
    my $mask = pack 'N', int rand 2**32;
    my $masked = $body ^ substr($mask x (1 + length($body) / 4), 0, length $body);
    print $to pack('CCn', 0x81, 0x80 | 126, length $body) . $mask . $masked;
    $to->flush;
    while (read($to, my $head, 2) == 2) {
        my ($kind, $length) = (ord($head) & 15, ord(substr $head, 1) & 127);
        if ($length == 126) { read($to, my $more, 2); $length = unpack 'n', $more }
        elsif ($length == 127) { read($to, my $more, 8); $length = unpack 'Q>', $more }
        read($to, my $text, $length) if $length;
        print $to pack('CC', 0x8A, 0x80 | $length) . "\0\0\0\0" . ($text // '') if $kind == 9;
        return 'socket' if $kind == 1 || $kind == 0;
        last if $kind == 8;
    }
    $socketed = undef;
    return 'socket ended';
}

sub lost {
    $socket = undef;
    return $_[0] || 0;
}

$SIG{PIPE} = 'IGNORE';
$SIG{TERM} = $SIG{INT} = sub { exit 0 };
$| = 1;
my $told = time;
while (1) {
    my $rate = $peak * (0.55 - 0.45 * cos(time / 120 * 6.28318));
    my $body = rand() < 0.05 ? '[' . join(',', map { call() } 1 .. 3) . ']' : call();
    $codes{rand() < 0.1 ? ask_socket($body) : ask($chains[rand @chains], $body)}++;
    if (time - $told > 10) {
        print join('  ', map { "$_: $codes{$_}" } sort keys %codes), "\n";
        ($told, %codes) = (time);
    }
    select(undef, undef, undef, 1 / $rate);
}
