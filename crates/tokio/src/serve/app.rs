//! The services for requests: of `tower`, and of hyper.

use ganger_proc_api::BoxError;
use hyper::body::{Body, Incoming};
use hyper::service::Service as _;
use hyper::{Request, Response};
use hyper_util::service::{TowerToHyperService, TowerToHyperServiceFuture};

/// An app for [`serve`](crate::serve()): a service of `tower` or of hyper. The compiler finds the
/// kind of the service.
pub trait App<Kind>: Clone + Send + 'static {
    /// The body of an answer.
    type Body: Body<Data: Send, Error: Into<BoxError>> + Send + 'static;
    /// The error in the place of an answer. The error closes the connection.
    type Error: Into<BoxError>;
    /// The answer to come.
    type Answering: Future<Output = Result<Response<Self::Body>, Self::Error>> + Send + 'static;

    /// Begins to answer a request.
    fn answer(&self, request: Request<Incoming>) -> Self::Answering;
}

/// A service of `tower`: axum's `Router`, tonic's `Routes`, for example.
#[derive(Debug)]
pub enum TowerApp {}

/// A service of hyper, such as the result of `hyper::service::service_fn`.
#[derive(Debug)]
pub enum HyperApp {}

impl<S, B> App<TowerApp> for S
where
    S: tower_service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;
    type Error = S::Error;
    type Answering = TowerToHyperServiceFuture<S, Request<Incoming>>;

    fn answer(&self, request: Request<Incoming>) -> Self::Answering {
        TowerToHyperService::new(self.clone()).call(request)
    }
}

impl<S, B> App<HyperApp> for S
where
    S: hyper::service::Service<Request<Incoming>, Response = Response<B>> + Clone + Send + 'static,
    S::Error: Into<BoxError>,
    S::Future: Send + 'static,
    B: Body<Data: Send, Error: Into<BoxError>> + Send + 'static,
{
    type Body = B;
    type Error = S::Error;
    type Answering = S::Future;

    fn answer(&self, request: Request<Incoming>) -> Self::Answering {
        self.call(request)
    }
}
