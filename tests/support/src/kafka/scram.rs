//! Users with a password, made over the plain listener.
//!
//! Invariant: every native object made here is destroyed here, on every path.

use std::ffi::{CStr, CString};
use std::ptr;

use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka_sys::bindings as native;

use super::client::Quiet;

const TIMEOUT_MS: i32 = 30_000;
/// The least that the broker takes.
const ITERATIONS: i32 = 4_096;

struct Alteration(*mut native::rd_kafka_UserScramCredentialAlteration_t);
struct Queue(*mut native::rd_kafka_queue_t);
struct Event(*mut native::rd_kafka_event_t);

impl Drop for Alteration {
    fn drop(&mut self) {
        // SAFETY: made by `set_password`, not null, destroyed once.
        unsafe { native::rd_kafka_UserScramCredentialAlteration_destroy(self.0) }
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        // SAFETY: made by `set_password`, not null, destroyed once, and before the client it belongs to.
        unsafe { native::rd_kafka_queue_destroy(self.0) }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        // SAFETY: given by queue_poll, destroyed once; null is allowed.
        unsafe { native::rd_kafka_event_destroy(self.0) }
    }
}

/// Makes the user, or gives it another password, for SCRAM-SHA-512.
pub(super) fn set_password(client: &BaseConsumer<Quiet>, user: &str, password: &str) {
    let client = client.client().native_ptr();
    let user = CString::new(user).expect("a user's name");
    // SAFETY: the pointers are valid for the calls; the library copies name and password; the event outlives what is read out of it.
    unsafe {
        let alteration = Alteration(native::rd_kafka_UserScramCredentialUpsertion_new(
            user.as_ptr(),
            native::rd_kafka_ScramMechanism_t::RD_KAFKA_SCRAM_MECHANISM_SHA_512,
            ITERATIONS,
            password.as_ptr(),
            password.len(),
            ptr::null(),
            0,
        ));
        let queue = Queue(native::rd_kafka_queue_new(client));
        let mut alterations = [alteration.0];
        native::rd_kafka_AlterUserScramCredentials(client, alterations.as_mut_ptr(), 1, ptr::null(), queue.0);
        let event = Event(native::rd_kafka_queue_poll(queue.0, TIMEOUT_MS));
        assert!(!event.0.is_null(), "no answer to the wish for a user");
        let words = native::rd_kafka_event_error_string(event.0);
        let words = if words.is_null() { "".into() } else { CStr::from_ptr(words).to_string_lossy() };
        let result = native::rd_kafka_event_AlterUserScramCredentials_result(event.0);
        assert!(!result.is_null(), "making a user: {words}");
        let mut count = 0;
        let responses = native::rd_kafka_AlterUserScramCredentials_result_responses(result, &mut count);
        assert_eq!(count, 1, "an answer for the user: {words}");
        let error = native::rd_kafka_AlterUserScramCredentials_result_response_error(*responses);
        let code = native::rd_kafka_error_code(error);
        assert_eq!(code, native::rd_kafka_resp_err_t::RD_KAFKA_RESP_ERR_NO_ERROR, "making a user");
    }
}
