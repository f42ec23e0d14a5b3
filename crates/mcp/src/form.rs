//! Forms of hosts (elicitation): a person answers what the defaults ask without leaving the host.
//!
//! A form answers nothing that a rule asks and nothing about files that run later, and only what it shows whole. The
//! choice is required and names the beginning of the hash of what is shown: hosts that accept forms by themselves send no
//! choice, and an answer without one is none.

use std::collections::BTreeMap;
use std::time::Duration;

use rmcp::model::{
    CallToolRequestParams, ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction,
    ElicitationSchema, EnumSchema, InputRequest, InputRequiredResult, PrimitiveSchemaDefinition,
    ProtocolVersion, RequestStateCodec, SealOptions,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer};
use serde_json::{Value, json};
use tgp::Kernel;
use tgp::approvals::{ApprovalState, KeptQuestion};
use tgp_contract::{Code, ToolError, canonical};
use tgp_text::visible_json;

use crate::approval::ClientQuestions;
use crate::client::Caller;

/// Forms for one request: each answer starts the run again, which may ask the next question.
pub(crate) const MAX_FORMS: usize = 5;
/// How long a person may take for one.
const FORM_PATIENCE: Duration = Duration::from_secs(300);
/// Bytes of what a form shows. What is longer is shown at the terminal.
const MAX_SHOWN_BYTES: usize = 4 << 10;
/// Characters of the hash that a person sees.
const HASH_CHARS: usize = 8;
/// How long a question that the host carries for us may take.
const STATE_LIFETIME: Duration = Duration::from_secs(24 * 60 * 60);
const KEY_BYTES: usize = 32;

const CHOICE: &str = "choice";
const DENY: &str = "deny";
/// The name of the form among the requests of one answer.
const FORM: &str = "approval";
/// Who has answered, in records.
const BY: &str = "a form of the host";

/// The key that protects questions on their way through a host. It lives as long as the server.
pub(crate) struct Forms {
    codec: RequestStateCodec,
}

/// What happens with a question.
pub(crate) enum Asked {
    /// It was answered: the call is made again.
    Answered,
    /// The host asks, and makes the request again with the answer.
    ByHost(Box<InputRequiredResult>),
    /// It waits for a person at a terminal.
    Waits,
}

impl Forms {
    /// # Errors
    /// `EINTERNAL` when the system gives no randomness.
    pub(crate) fn new() -> Result<Self, ToolError> {
        let mut key = [0_u8; KEY_BYTES];
        getrandom::fill(&mut key)
            .map_err(|error| ToolError::new(Code::Internal, format!("no randomness: {error}")))?;
        let codec = RequestStateCodec::try_new(key)
            .map_err(|error| ToolError::new(Code::Internal, format!("no key: {error}")))?;
        Ok(Self { codec })
    }

    /// Has a person asked by the host, where that is possible and enough.
    pub(crate) async fn ask(
        &self,
        caller: &Caller,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
        id: &str,
    ) -> Asked {
        let shared = caller.shared();
        if !shared.options.forms || !shows_forms(context) {
            return Asked::Waits;
        }
        let Ok(Some(questions)) = ClientQuestions::of(shared, caller.session()) else { return Asked::Waits };
        let Ok(question) = questions.find(id) else { return Asked::Waits };
        let Some(form) = form(&question) else { return Asked::Waits };
        if is_stateless(context) {
            let bound = bound_to(caller, request);
            let options = SealOptions::new().associated_data(&bound).ttl(STATE_LIFETIME);
            let state = self.codec.seal_with(sealed(&question).as_bytes(), &options);
            let requests =
                BTreeMap::from([(FORM.to_owned(), InputRequest::Elicitation(ElicitRequest::new(form)))]);
            return Asked::ByHost(Box::new(InputRequiredResult::new(Some(requests), Some(state))));
        }
        match context.peer.create_elicitation_with_timeout(form, Some(FORM_PATIENCE)).await {
            Ok(answer) => settle(&caller.shared().kernel, &questions, &question, &answer).await,
            // A host that cannot show it, or a person who does not answer: the question waits.
            Err(_) => Asked::Waits,
        }
    }

    /// Takes the answer that a host has brought with the repeated request.
    ///
    /// # Errors
    /// When it is not an answer to a question of this very request.
    pub(crate) async fn take(
        &self,
        caller: &Caller,
        request: &CallToolRequestParams,
    ) -> Result<(), ErrorData> {
        let Some(state) = &request.request_state else { return Ok(()) };
        let refused = |why: String| ErrorData::invalid_params(why, None);
        let id = self
            .codec
            .open_with(state, &bound_to(caller, request))
            .map_err(|error| refused(format!("requestState: {error}")))?;
        let state = String::from_utf8_lossy(&id).into_owned();
        let id = state.split(' ').next().unwrap_or_default();
        let answer = request.input_responses.as_ref().and_then(|answers| answers.get(FORM));
        let Some(answer) = answer else { return Ok(()) };
        let answer: ElicitResult = serde_json::from_value(answer.clone())
            .map_err(|error| refused(format!("inputResponses.{FORM}: {error}")))?;
        let shared = caller.shared();
        if !shared.options.forms {
            return Ok(());
        }
        let questions = ClientQuestions::of(shared, caller.session());
        if let Ok(Some(questions)) = questions
            && let Ok(question) = questions.find(id)
            && sealed(&question) == state
            && form(&question).is_some()
        {
            settle(&shared.kernel, &questions, &question, &answer).await;
        }
        Ok(())
    }
}

/// A question as a host carries it. The same question of a later run was asked at another time, and needs an answer of its
/// own.
fn sealed(question: &KeptQuestion) -> String {
    format!("{} {}", question.id, question.asked_ms)
}

/// What a repeated request has in common with the first one.
fn bound_to(caller: &Caller, request: &CallToolRequestParams) -> Vec<u8> {
    let bound = json!({
        "session": caller.session(),
        "tool": request.name,
        "arguments": request.arguments,
    });
    canonical::hash_exact(bound).into_bytes()
}

fn is_stateless(context: &RequestContext<RoleServer>) -> bool {
    // Revisions are dates, so that their texts compare as they do.
    context
        .protocol_version()
        .is_some_and(|version| version.as_str() >= ProtocolVersion::V_2026_07_28.as_str())
}

fn shows_forms(context: &RequestContext<RoleServer>) -> bool {
    let capability = context.client_capabilities().and_then(|capabilities| capabilities.elicitation);
    capability.is_some_and(|capability| capability.form.is_some() || capability.url.is_none())
}

/// The form of a question, where a form may answer it and can show it whole.
fn form(question: &KeptQuestion) -> Option<ElicitRequestParams> {
    let request = question.request();
    if question.state() != ApprovalState::Pending || !request.is_default() {
        return None;
    }
    let reasons: Vec<&str> = request.reasons.iter().map(|reason| reason.reason.as_str()).collect();
    let content = json!({
        "tool": request.definition.name,
        "arguments": request.call.arguments,
        "targets": request.targets,
        "would": without_repeats(request.preview.as_ref(), &request.call.arguments),
        "because": reasons,
    });
    // The only ends of lines are those of the document itself: those in its texts are escaped.
    let content = serde_json::to_string_pretty(&content).ok()?;
    let content = content.lines().map(visible_json).collect::<Vec<_>>().join("\n");
    if content.len() > MAX_SHOWN_BYTES {
        return None;
    }
    let message = format!(
        "`{}` needs your approval ({}):\n{content}\nTGP records your answer. `tgp approve {}` in a terminal shows the same.",
        request.definition.name,
        hash_prefix(question),
        question.id
    );
    let choices = vec![DENY.to_owned(), approve(question)];
    let schema = EnumSchema::builder(choices).untitled().title("Answer").build();
    let schema = ElicitationSchema::builder()
        .required_property(CHOICE, PrimitiveSchemaDefinition::Enum(schema))
        .build()
        .ok()?;
    Some(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema: schema })
}

/// A preview without those of its texts that the arguments show already.
fn without_repeats(preview: Option<&Value>, arguments: &Value) -> Option<Value> {
    let mut preview = preview?.clone();
    if let (Some(fields), Some(arguments)) = (preview.as_object_mut(), arguments.as_object()) {
        fields.retain(|_, shown| !shown.is_string() || !arguments.values().any(|argument| argument == shown));
    }
    Some(preview)
}

fn hash_prefix(question: &KeptQuestion) -> String {
    question.hash().chars().take(HASH_CHARS).collect()
}

fn approve(question: &KeptQuestion) -> String {
    format!("approve {}", hash_prefix(question))
}

/// What a form has said. Only the required choice approves; a form that was accepted without one leaves the question to the
/// terminal.
async fn settle(
    kernel: &Kernel,
    questions: &ClientQuestions,
    question: &KeptQuestion,
    answer: &ElicitResult,
) -> Asked {
    let choice = answer.content.as_ref().and_then(|content| content.get(CHOICE)).and_then(Value::as_str);
    let settled = match (&answer.action, choice) {
        (ElicitationAction::Accept, Some(choice)) if choice == approve(question) => {
            questions.grant(kernel, question, BY).await
        }
        (ElicitationAction::Accept, Some(DENY)) | (ElicitationAction::Decline, _) => {
            questions.deny(kernel, question, BY, "declined").await
        }
        _ => return Asked::Waits,
    };
    match settled {
        Ok(()) => Asked::Answered,
        Err(_) => Asked::Waits,
    }
}
