//! Runs hyper's own tasks on the worker that owns the connection.

/// An executor for futures that never leave their worker.
#[derive(Clone, Copy, Debug)]
pub struct LocalExecutor;

impl<F> hyper::rt::Executor<F> for LocalExecutor
where
    F: Future<Output = ()> + 'static,
{
    fn execute(&self, future: F) {
        tokio::task::spawn_local(future);
    }
}
