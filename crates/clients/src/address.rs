//! Whom a request without a key is counted for. Decides which address asked and how far it reaches; never whether it
//! may.

use std::net::IpAddr;

/// The address that asked: the connection's, or, where that is a proxy that is `trusted`, the one that it names. Each
/// proxy appends whom it heard, so the list is read from its end, and only as far as trusted proxies wrote it.
pub fn asker<'a>(
    peer: IpAddr,
    forwarded: impl DoubleEndedIterator<Item = &'a str>,
    trusted: impl Fn(IpAddr) -> bool,
) -> IpAddr {
    let mut asker = peer.to_canonical();
    for entry in forwarded.rev() {
        if !trusted(asker) {
            break;
        }
        let Some(named) = parse(entry) else { break };
        asker = named.to_canonical();
    }
    asker
}

/// The network that is counted as one: an IPv4 address, or the 64 bits of IPv6 that one customer is given.
#[must_use]
pub fn network_of(address: IpAddr) -> Box<str> {
    match address.to_canonical() {
        IpAddr::V4(address) => address.to_string().into(),
        IpAddr::V6(address) => {
            let network = std::net::Ipv6Addr::from_bits(address.to_bits() >> 64 << 64);
            format!("{network}/64").into()
        }
    }
}

/// An address as proxies write it: bare, in brackets, with a port.
fn parse(entry: &str) -> Option<IpAddr> {
    let entry = entry.trim().trim_matches('"');
    let bare =
        entry.strip_prefix('[').and_then(|rest| rest.split_once(']')).map_or(entry, |(address, _)| address);
    let with_port = || entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip());
    bare.parse().ok().or_else(with_port)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(peer: &str, forwarded: &str) -> String {
        let trusted =
            |address: IpAddr| address.to_string().starts_with("10.") || address.to_string() == "fd00::1";
        asker(peer.parse().expect("an address"), forwarded.split(','), trusted).to_string()
    }

    /// Kills: believing anybody's header, reading it from the front, passing over what cannot be read.
    #[test]
    fn only_trusted_proxies_are_believed() {
        for (peer, forwarded, expected) in [
            ("1.2.3.4", "9.9.9.9", "1.2.3.4"),
            ("10.0.0.1", "", "10.0.0.1"),
            ("10.0.0.1", "9.9.9.9", "9.9.9.9"),
            ("10.0.0.1", "6.6.6.6, 9.9.9.9", "9.9.9.9"),
            ("10.0.0.1", "6.6.6.6, 9.9.9.9 , 10.0.0.2", "9.9.9.9"),
            ("10.0.0.1", "10.0.0.3, 10.0.0.2", "10.0.0.3"),
            ("10.0.0.1", "9.9.9.9, unknown", "10.0.0.1"),
            ("10.0.0.1", "9.9.9.9:4711", "9.9.9.9"),
            ("10.0.0.1", "\"[2001:db8::1]:4711\"", "2001:db8::1"),
            ("::ffff:10.0.0.1", "2001:db8::1", "2001:db8::1"),
            ("fd00::1", "::ffff:9.9.9.9", "9.9.9.9"),
        ] {
            assert_eq!(asked(peer, forwarded), expected, "{peer} {forwarded}");
        }
    }

    /// Kills: counting each of a customer's 2⁶⁴ addresses alone, or all of IPv6 as one.
    #[test]
    fn an_ipv6_customer_is_one() {
        let network = |address: &str| network_of(address.parse().expect("an address"));
        assert_eq!(&*network("2001:db8:1:2:3:4:5:6"), "2001:db8:1:2::/64");
        assert_eq!(network("2001:db8:1:2::1"), network("2001:db8:1:2:ffff::"));
        assert_ne!(network("2001:db8:1:2::1"), network("2001:db8:1:3::1"));
        assert_eq!(&*network("::ffff:1.2.3.4"), "1.2.3.4");
    }
}
