//! When a registrar is there.

use bytes::Bytes;
use ganger_cluster::{Cluster, Engine, EngineError, EngineSink, Lane, NodeId, Registrar};
use ganger_proc_api::Pid;
use ganger_sched::{Handle, Scheduler};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Looks for the registrar when the node begins to be reached, and then fails.
struct Looks(Mutex<Sender<Option<Pid>>>);

impl Engine for Looks {
    fn start(&self, _: &NodeId, _: Arc<dyn EngineSink>) -> Result<(), EngineError> {
        unreachable!("the node starts the engine in its scheduler")
    }

    fn start_in(
        &self,
        scheduler: &Handle,
        _: &NodeId,
        _: Arc<dyn EngineSink>,
    ) -> Result<(), EngineError> {
        let registrar = scheduler.whereis("ganger.registrar");
        self.0.lock().unwrap().send(registrar).unwrap();
        Err(EngineError::Other("by the test".into()))
    }

    fn send(&self, _: &NodeId, _: Lane, _: Bytes) -> bool {
        false
    }

    fn stop(&self, _: Duration) {}
}

#[test]
fn a_registrar_is_there_before_its_node_is_reached_and_ends_where_the_engine_fails() {
    let scheduler = Scheduler::builder().workers(1).node("of-a-registrar");
    let scheduler = scheduler.quiet_failures().start().unwrap();
    let folder = std::env::temp_dir().join(format!("ganger-registrar-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (tell, told) = channel();
    let refused = Cluster::builder()
        .engine(Looks(Mutex::new(tell)))
        .store(Registrar::file(folder.join("log")))
        .join(&scheduler);
    assert!(refused.unwrap_err().to_string().contains("by the test"));
    let registrar = told.try_recv().unwrap();
    assert!(registrar.is_some(), "a peer that asks would hear of none");

    let report = scheduler.stop(Duration::from_secs(60)).unwrap();
    assert_eq!(report.forced, 0, "{report:?}");
    std::fs::remove_dir_all(folder).unwrap();
}
