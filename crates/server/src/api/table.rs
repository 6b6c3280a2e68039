//! The table's macro: from one line per API to dispatch, versions and limits.

use wire::{ApiKey, EncodeError, Message, Request, Writer};

use super::{Answer, Handled, HandlerError, RequestContext};

/// How large a request of an API may get, header included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FrameLimit {
    /// 64 KiB: requests that are short by nature.
    Small,
    /// 8 MiB: group requests, which carry subscriptions, assignments and topologies.
    Group,
    /// `socket.request.max.bytes`.
    Configured,
}

/// One line of the table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Api {
    pub key: ApiKey,
    pub min_version: i16,
    pub max_version: i16,
    /// First version that ApiVersions shows; lower than `min_version` only where Kafka does the same (Produce).
    pub advertised_from: i16,
    /// False: handled if it comes, but not shown.
    pub advertised: bool,
    pub limit: FrameLimit,
}

impl Api {
    pub fn handles(&self, version: i16) -> bool {
        (self.min_version..=self.max_version).contains(&version)
    }
}

macro_rules! apis {
    ($($number:literal => $file:ident, $message:ident::$request:ident, $min:literal..=$max:literal, $limit:ident
        $(, [advertised from $from:literal])? $(, $hidden:ident)?;)*) => {
        /// Everything that this broker answers, by ascending key.
        pub(crate) static APIS: &[table::Api] = &[$(table::Api {
            key: <wire::messages::$message::$request as wire::Request>::KEY,
            min_version: $min,
            max_version: $max,
            advertised_from: [$($from,)? $min][0],
            advertised: !table::is_hidden([$(stringify!($hidden),)? ""][0]),
            limit: table::FrameLimit::$limit,
        }),*];

        /// The line of a key.
        pub(crate) fn api(number: i16) -> Option<&'static table::Api> {
            APIS.binary_search_by_key(&number, |api| api.key.code()).ok().map(|at| &APIS[at])
        }

        /// Decodes the body and runs the handler. Key and version have been checked against the table.
        pub(crate) async fn dispatch(
            cx: &RequestContext<'_>,
            number: i16,
            body: &mut wire::Reader<'_>,
        ) -> Result<Answer, HandlerError> {
            match number {
                $($number => {
                    type Body = wire::messages::$message::$request;
                    let request = <Body as wire::Message>::decode(body, cx.api_version)?;
                    // Boxed, so that a connection is as small as its frame buffer, whatever the largest handler needs.
                    let handled = Box::pin($file::handle(cx, request)).await?;
                    table::answer::<Body>(cx, handled)
                })*
                _ => Err(HandlerError::Close(format!("unknown API key {number}"))),
            }
        }

        #[cfg(test)]
        mod table_tests {
            #[test]
            fn the_table_is_sorted_and_agrees_with_the_schemas() {
                let numbers = [$($number),*];
                assert!(numbers.is_sorted());
                for (api, number) in super::APIS.iter().zip(numbers) {
                    assert_eq!(api.key.code(), number, "{}", api.key);
                    let known = api.key.versions();
                    assert!(known.contains(&api.min_version) && known.contains(&api.max_version), "{}", api.key);
                    assert!(api.advertised_from <= api.min_version && api.min_version <= api.max_version, "{}", api.key);
                }
            }
        }
    };
}
pub(super) use apis;

pub(super) const fn is_hidden(word: &str) -> bool {
    !word.is_empty()
}

/// Frames what a handler gave.
pub(super) fn answer<B: Request>(cx: &RequestContext<'_>, handled: Handled<B::Response>) -> Result<Answer, HandlerError>
where
    B::Response: Send + 'static,
{
    let (version, correlation_id) = (cx.api_version, cx.correlation_id);
    Ok(match handled {
        Handled::Ready(response) => {
            let writer = frame(B::KEY, version, correlation_id, &response)?;
            cx.broker.metrics.requests.answered(B::KEY, &writer);
            Answer::Ready(writer)
        }
        Handled::Later(response) => {
            let broker = cx.broker.clone();
            Answer::Later(Box::pin(async move {
                let writer = frame(B::KEY, version, correlation_id, &response.await?)?;
                broker.metrics.requests.answered(B::KEY, &writer);
                Ok(writer)
            }))
        }
        Handled::NoResponse => Answer::NoResponse,
    })
}

/// A whole response: length, header, body (N-1).
pub(crate) fn frame(
    key: ApiKey,
    version: i16,
    correlation_id: i32,
    response: &impl Message,
) -> Result<Writer, EncodeError> {
    const USUAL_BYTES: usize = 128;
    let mut writer = Writer::with_capacity(USUAL_BYTES);
    let length = writer.reserve_i32();
    writer.i32(correlation_id);
    if key.response_header_version(version) > 0 {
        writer.unsigned_varint(0);
    }
    response.encode(&mut writer, version)?;
    let bytes = writer.len() - size_of::<i32>();
    writer.patch_i32(length, i32::try_from(bytes).map_err(|_| EncodeError::TooLong(bytes))?);
    Ok(writer)
}
