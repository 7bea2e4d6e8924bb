//! Providers of one chain that die in turn, for real clients to live through. Which one is down, and how it went, is
//! decided here; nobody but time decides when.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use crate::behaviour::Behaviour;
use crate::chain::Chain;
use crate::provider::{Provider, Script};

/// The chain id that they tell.
const CHAIN_ID: u64 = 1337;

/// What comes before a provider is gone: some say goodbye.
const GOODBYES: [Option<(u16, &str)>; 3] = [None, Some((1001, "going away")), Some((1011, "internal error"))];

/// The running providers.
#[derive(Debug)]
pub struct Mortals {
    providers: Vec<Provider>,
}

impl Mortals {
    /// Starts one provider on each address; their chain gains a block every `block_time`.
    ///
    /// # Errors
    /// When a port is not to be had.
    pub async fn open(addresses: &[SocketAddr], block_time: Duration) -> io::Result<Self> {
        let chain = Chain::ticking(CHAIN_ID, block_time);
        let mut providers = Vec::new();
        for address in addresses {
            let script = Script::new(&chain).archive().remembering(0);
            providers.push(Provider::start_at(script, *address).await?);
        }
        Ok(Self { providers })
    }

    /// Where they listen.
    pub fn addresses(&self) -> impl Iterator<Item = SocketAddr> {
        self.providers.iter().map(Provider::address)
    }

    /// Takes one after the other down for `down`, for ever. The others serve meanwhile.
    ///
    /// # Errors
    /// When a port cannot be listened on again.
    pub async fn play(&self, down: Duration) -> io::Result<()> {
        let mut goodbyes = GOODBYES.iter().cycle();
        loop {
            for provider in &self.providers {
                if let Some(Some((code, reason))) = goodbyes.next() {
                    provider.close_sockets(*code, reason);
                }
                provider.set(Behaviour::RefuseConnections).await?;
                tokio::time::sleep(down).await;
                provider.set(Behaviour::Healthy).await?;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;
    use tokio::net::TcpStream;

    /// Kills: a provider that never dies, one that stays dead, two that are down at once.
    #[tokio::test]
    async fn each_goes_and_comes_back_while_the_others_serve() {
        let any = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let mortals = Mortals::open(&[any; 2], Duration::from_secs(1)).await.expect("starts");
        let addresses: Vec<SocketAddr> = mortals.addresses().collect();
        let look = async {
            for (dead, alive) in [(0, 1), (1, 0), (0, 1)] {
                while TcpStream::connect(addresses[dead]).await.is_ok() {
                    tokio::time::sleep(Duration::from_millis(1)).await;
                }
                TcpStream::connect(addresses[alive]).await.expect("the other one serves");
            }
        };
        tokio::select! {
            played = mortals.play(Duration::from_secs(1)) => panic!("ended: {played:?}"),
            looked = tokio::time::timeout(Duration::from_secs(60), look) => looked.expect("deaths"),
        }
    }
}
