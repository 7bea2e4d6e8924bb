//! Whether a socket may open: there is room for it in the process, and a call on it would find somebody to ask.
//! Nothing is sent for this but where health has excluded everybody; there a call has to show that somebody lives.

use crate::call;
use crate::fleet::Chain;
use crate::gates::{Place, Shed};
use crate::hunt::{End, Hunt};
use crate::metrics::ChainCounts;
use crate::reply::Problem;
use crate::request::Request;
use crate::route::{FilterUse, Need, Safety};
use crate::socket::close::Why;
use crate::worker::Worker;
use bytes::Bytes;
use jsonrpc::Envelope;
use ledger::Cost;
use std::rc::Rc;
use std::time::Instant;
use store::Permit;

/// What is asked when nobody is known to live.
const SIGN_OF_LIFE: &[u8] = br#"{"jsonrpc":"2.0","id":1,"method":"eth_blockNumber","params":[]}"#;

/// One open socket, counted where sockets are counted; given back when dropped.
pub(super) struct Seat {
    worker: Rc<Worker>,
    counts: Rc<ChainCounts>,
    _place: Place,
    /// The client's, where its sockets are limited.
    _slot: Option<Permit>,
    /// The socket is open: the handshake was answered.
    seated: bool,
}

impl Seat {
    /// Waits a moment for a place among the open sockets.
    pub(super) async fn take(
        worker: &Rc<Worker>,
        chain: &Chain,
        slot: Option<Permit>,
        until: Instant,
    ) -> Result<Seat, Shed> {
        let place = worker.app.gates.websocket.enter(until).await?;
        worker.connection_begun();
        let counts = worker.metrics.chain(chain);
        Ok(Seat { worker: Rc::clone(worker), counts, _place: place, _slot: slot, seated: false })
    }

    pub(super) fn opened(&mut self) {
        self.seated = true;
        self.counts.socket_opened();
    }

    pub(super) fn counts(&self) -> &Rc<ChainCounts> {
        &self.counts
    }

    pub(super) fn closed(&self, why: Why) {
        self.counts.socket_closed(why.as_str());
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        if self.seated {
            self.counts.socket_gone();
        }
        self.worker.connection_ended();
    }
}

/// Whether a call would find somebody to ask now, or soon enough to wait for.
pub(super) async fn can_serve(request: &Request<'_>) -> Result<(), Problem> {
    // As if it were to be sent only once: nobody's trial is spent on it.
    let need = Need { safety: Safety::Once, filter: FilterUse::None, known: false, archive: request.archive };
    let mut hunt = Hunt::new(request, need, "", None);
    match hunt.next(Cost::requests(1)).await {
        Ok(picked) if !hunt.is_last_resort() => {
            hunt.put_back(picked);
            Ok(())
        }
        Ok(_) => shows_life(request).await,
        Err(End::Problem(problem)) => Err(problem),
        Err(End::Answer(_) | End::Split) => Err(Problem::NoLiveEndpoint),
    }
}

async fn shows_life(request: &Request<'_>) -> Result<(), Problem> {
    let body = Bytes::from_static(SIGN_OF_LIFE);
    let Ok(Envelope::Single(call)) = jsonrpc::parse(&body, 1) else { return Err(Problem::Internal) };
    Box::pin(call::serve(request, &call, &body)).await.0.map(drop)
}
