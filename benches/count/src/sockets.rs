//! Requests over a connection of TCP. Both ends are tasks of the same worker, so no other thread
//! decides how many events the worker finds.

use crate::one_worker::{OneWorker, ended};
use ganger_net::{TcpListener, TcpStream};
use ganger_proc_api::BoxError;
use ganger_sched::ContextExt;
use ganger_task::Cx;

/// The bytes of a request, and of its answer.
const LENGTH: usize = 64;

pub(crate) fn run(worker: &OneWorker, requests: u64) -> Result<(), BoxError> {
    let server = worker.scheduler.spawn(async move |cx: Cx| {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let address = listener.local_addr()?;
        let client = cx.spawn(async move |_: Cx| {
            let stream = TcpStream::connect(address).await?;
            for request in 0..requests {
                let [mark, ..] = request.to_le_bytes();
                stream.write_all(&[mark; LENGTH]).await?;
                let mut answer = [0; LENGTH];
                stream.read_exact(&mut answer).await?;
                if answer != [mark; LENGTH] {
                    return Err("another answer".into());
                }
            }
            Ok(())
        })?;
        let (stream, _) = listener.accept().await?;
        let mut buffer = [0; 2 * LENGTH];
        loop {
            match stream.read(&mut buffer).await? {
                0 => break,
                length => stream.write_all(&buffer[..length]).await?,
            }
        }
        drop(client);
        Ok(())
    })?;
    ended(server)
}
