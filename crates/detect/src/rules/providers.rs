//! Which provider a host belongs to, for endpoints whose provider was not configured.

/// Ends of host names, and the provider behind them.
const HOSTS: [(&str, &str); 26] = [
    ("alchemy.com", "alchemy"),
    ("alchemyapi.io", "alchemy"),
    ("infura.io", "infura"),
    ("quiknode.pro", "quicknode"),
    ("quicknode.com", "quicknode"),
    ("ankr.com", "ankr"),
    ("drpc.org", "drpc"),
    ("chainstack.com", "chainstack"),
    ("p2pify.com", "chainstack"),
    ("blockpi.network", "blockpi"),
    ("getblock.io", "getblock"),
    ("tenderly.co", "tenderly"),
    ("llamarpc.com", "llamarpc"),
    ("publicnode.com", "publicnode"),
    ("bnbchain.org", "binance"),
    ("binance.org", "binance"),
    ("defibit.io", "binance"),
    ("ninicoin.io", "binance"),
    ("moralis.io", "moralis"),
    ("nodereal.io", "nodereal"),
    ("blastapi.io", "blastapi"),
    ("1rpc.io", "1rpc"),
    ("onfinality.io", "onfinality"),
    ("helius-rpc.com", "helius"),
    ("solana.com", "solana-public"),
    ("megaeth.com", "megaeth"),
];

/// The provider behind a host.
pub(super) fn of_host(host: &str) -> Option<&'static str> {
    let belongs = |domain: &str| {
        let Some(at) = host.len().checked_sub(domain.len()) else { return false };
        let end = &host.as_bytes()[at..];
        end.eq_ignore_ascii_case(domain.as_bytes()) && (at == 0 || host.as_bytes()[at - 1] == b'.')
    };
    HOSTS.iter().find(|(domain, _)| belongs(domain)).map(|(_, provider)| *provider)
}

/// Whether a configured provider is the one a rule names: `ankr` also covers `Ankr-premium`.
pub(super) fn is(provider: &str, named: &str) -> bool {
    let bytes = provider.as_bytes();
    bytes.len() >= named.len()
        && bytes[..named.len()].eq_ignore_ascii_case(named.as_bytes())
        && bytes.get(named.len()).is_none_or(|next| !next.is_ascii_alphanumeric())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_belong_to_their_domain_only() {
        assert_eq!(of_host("eth-mainnet.g.Alchemy.com"), Some("alchemy"));
        assert_eq!(of_host("ankr.com"), Some("ankr"));
        assert_eq!(of_host("notankr.com"), None);
        assert_eq!(of_host("x"), None);
    }

    #[test]
    fn a_name_covers_its_variants() {
        assert!(is("Ankr-premium", "ankr") && is("ANKR", "ankr"));
        assert!(!is("ankrx", "ankr") && !is("an", "ankr"));
    }
}
