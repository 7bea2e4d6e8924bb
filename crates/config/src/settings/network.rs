//! Address ranges. Decides whether an address lies in one; never whether it is believed.

use std::net::IpAddr;

use super::value::{Kind, Value};

/// An address range, such as `10.0.0.0/8` or `2001:db8::/32`; a bare address is a range of one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Network {
    address: IpAddr,
    prefix: u8,
}

impl Network {
    /// Whether `address` lies in the range. IPv4 addresses mapped into IPv6 count as IPv4.
    pub fn contains(&self, address: IpAddr) -> bool {
        let shift = |width: u8| u32::from(width - self.prefix);
        match (self.address, address.to_canonical()) {
            (IpAddr::V4(net), IpAddr::V4(ip)) => {
                (net.to_bits() ^ ip.to_bits()).checked_shr(shift(32)).unwrap_or(0) == 0
            }
            (IpAddr::V6(net), IpAddr::V6(ip)) => {
                (net.to_bits() ^ ip.to_bits()).checked_shr(shift(128)).unwrap_or(0) == 0
            }
            (IpAddr::V4(_), IpAddr::V6(_)) | (IpAddr::V6(_), IpAddr::V4(_)) => false,
        }
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, prefix) = text.split_once('/').map_or((text, None), |(a, p)| (a, Some(p)));
        let address: IpAddr = address.trim().parse().ok()?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(width), |prefix| prefix.trim().parse().ok())?;
        (prefix <= width).then_some(Self { address, prefix })
    }
}

impl Value for Vec<Network> {
    fn parse(text: &str, _: Kind) -> Result<Self, String> {
        let networks = text.split(',').map(str::trim).filter(|network| !network.is_empty());
        networks
            .map(|network| {
                Network::parse(network).ok_or_else(|| format!("{network:?} is no address or network"))
            })
            .collect()
    }

    fn show(&self) -> Option<String> {
        let all: Vec<String> = self.iter().map(|n| format!("{}/{}", n.address, n.prefix)).collect();
        (!all.is_empty()).then(|| all.join(","))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    // Kills: a shift by the full width, which would panic or match nothing for /0.
    #[test]
    fn networks_hold_their_addresses() {
        let check = |network: &str, address: &str, expected: bool| {
            let network = Network::parse(network).expect(network);
            assert_eq!(network.contains(address.parse().unwrap()), expected, "{network:?} {address}");
        };
        check("10.0.0.0/8", "10.255.0.1", true);
        check("10.0.0.0/8", "11.0.0.1", false);
        check("10.0.0.1", "10.0.0.1", true);
        check("10.0.0.1", "10.0.0.2", false);
        check("0.0.0.0/0", "203.0.113.9", true);
        check("0.0.0.0/0", "::1", false);
        check("::/0", "2001:db8::1", true);
        check("2001:db8::/32", "2001:db9::1", false);
        check("10.0.0.0/8", "::ffff:10.1.2.3", true);
        let all = Vec::<Network>::parse(" 10.0.0.0/8, ::1 ,", Kind::Networks).unwrap();
        assert_eq!(all.show().as_deref(), Some("10.0.0.0/8,::1/128"));
        for bad in ["10.0.0.0/33", "::/129", "host", "10.0.0.0/x", "10.0.0/8"] {
            assert!(Vec::<Network>::parse(bad, Kind::Networks).is_err(), "{bad}");
        }
    }
}
