//! A queue whose calls are timed.

use std::sync::Arc;
use std::time::Instant;

use queue::QueueStore;

use crate::metrics;

/// A queue whose calls are timed.
pub(crate) struct Measured(pub(crate) Arc<dyn QueueStore>);

/// Passes calls on and times them.
macro_rules! timed {
    ($($call:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        #[async_trait::async_trait]
        impl QueueStore for Measured {
            fn address(&self) -> Option<&str> {
                self.0.address()
            }

            fn leads(&self) -> queue::Result<()> {
                self.0.leads()
            }

            $(async fn $call(&self, $($argument: $type),*) -> queue::Result<$answer> {
                let began = Instant::now();
                let result = self.0.$call($($argument),*).await;
                metrics::queue_called(stringify!($call), began.elapsed(), result.as_ref().err());
                result
            })+
        }
    };
}

queue::for_each_call!(timed);
