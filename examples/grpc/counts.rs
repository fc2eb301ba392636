//! The messages, the server and the client of a service, as `tonic-prost-build` writes them for
//! ```proto
//! package counts;
//! service Counts { rpc Add(Addition) returns (Total); }
//! message Addition { string name = 1; uint64 amount = 2; }
//! message Total { uint64 amount = 1; }
//! ```
//!
//! Here they are written by hand, and shorter, so that the build needs no `protoc`.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::{Service, http};
use tonic::server::{Grpc, NamedService};
use tonic::transport::Channel;
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

const NAME: &str = "counts.Counts";
const ADD: &str = "/counts.Counts/Add";

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Addition {
    #[prost(string, tag = "1")]
    pub(crate) name: String,
    #[prost(uint64, tag = "2")]
    pub(crate) amount: u64,
}

#[derive(Clone, PartialEq, prost::Message)]
pub(crate) struct Total {
    #[prost(uint64, tag = "1")]
    pub(crate) amount: u64,
}

type Answering<T, E> = Pin<Box<dyn Future<Output = Result<T, E>> + Send>>;

/// The service of the server.
pub(crate) trait Counts: Send + Sync + 'static {
    fn add(
        &self,
        request: Request<Addition>,
    ) -> impl Future<Output = Result<Response<Total>, Status>> + Send;
}

pub(crate) struct CountsServer<T>(Arc<T>);

impl<T: Counts> CountsServer<T> {
    pub(crate) fn new(counts: T) -> Self {
        Self(Arc::new(counts))
    }
}

impl<T> Clone for CountsServer<T> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<T> NamedService for CountsServer<T> {
    const NAME: &'static str = NAME;
}

impl<T: Counts> Service<http::Request<Body>> for CountsServer<T> {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = Answering<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        if request.uri().path() != ADD {
            let unknown = Status::unimplemented("no such method");
            return Box::pin(async move { Ok(unknown.into_http()) });
        }
        let add = Add(Arc::clone(&self.0));
        Box::pin(async move {
            let mut grpc = Grpc::new(ProstCodec::<Total, Addition>::default());
            Ok(grpc.unary(add, request).await)
        })
    }
}

struct Add<T>(Arc<T>);

impl<T: Counts> Service<Request<Addition>> for Add<T> {
    type Response = Response<Total>;
    type Error = Status;
    type Future = Answering<Response<Total>, Status>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Status>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Addition>) -> Self::Future {
        let counts = Arc::clone(&self.0);
        Box::pin(async move { counts.add(request).await })
    }
}

pub(crate) struct CountsClient(tonic::client::Grpc<Channel>);

impl CountsClient {
    pub(crate) fn new(channel: Channel) -> Self {
        Self(tonic::client::Grpc::new(channel))
    }

    pub(crate) async fn add(&mut self, addition: Addition) -> Result<Response<Total>, Status> {
        let ready = self.0.ready().await;
        ready.map_err(|error| Status::unavailable(error.to_string()))?;
        let codec = ProstCodec::<Addition, Total>::default();
        let path = http::uri::PathAndQuery::from_static(ADD);
        self.0.unary(Request::new(addition), path, codec).await
    }
}
