//! The same stream, however it is cut into chunks and whatever is between its events, says the same.

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use tgp_contract::StreamEvent;
use tgp_llm::Wire;

use crate::server::{Answer, Server};
use crate::support::{WIRES, golden, hello, json_of, once, play, recorded, without_port};

/// How a stream is disguised.
#[derive(Clone, Debug)]
struct Disguise {
    line_end: &'static str,
    has_mark: bool,
    /// What is put before events, round and round.
    noise: Vec<Noise>,
    /// Where it is cut, as fractions of its length.
    cuts: Vec<prop::sample::Index>,
    /// Every byte on its own, instead.
    is_shredded: bool,
}

#[derive(Clone, Debug)]
enum Noise {
    Nothing,
    Comment,
    KeepAlive,
    UnknownEvent,
    UnknownJson,
    UnknownFields,
    /// The next event's data on two lines.
    TwoLines,
    EmptyData,
}

impl Noise {
    fn before(&self, event: &str) -> String {
        match self {
            Self::Nothing => event.to_owned(),
            Self::Comment => format!(": still here 🕰\n{event}"),
            Self::KeepAlive => format!(":\n\n:\n\n{event}"),
            Self::UnknownEvent => format!("event: x-gateway.progress\ndata: not json {{\n\n{event}"),
            Self::UnknownJson => format!("event: later\ndata: {{\"type\":\"later\",\"new\":[1]}}\n\n{event}"),
            Self::UnknownFields => format!("id: 7\nretry: 100\nfoo: bar\nbaz\n{event}"),
            Self::TwoLines => event.replacen("data: {", "data:{\ndata: ", 1),
            Self::EmptyData => format!("data\n\ndata:\n\n{event}"),
        }
    }
}

fn disguises() -> impl Strategy<Value = Disguise> {
    let noise = prop_oneof![
        3 => Just(Noise::Nothing),
        1 => Just(Noise::Comment),
        1 => Just(Noise::KeepAlive),
        1 => Just(Noise::UnknownEvent),
        1 => Just(Noise::UnknownJson),
        1 => Just(Noise::UnknownFields),
        1 => Just(Noise::TwoLines),
        1 => Just(Noise::EmptyData),
    ];
    (
        prop::sample::select(vec!["\n", "\r\n", "\r"]),
        any::<bool>(),
        prop::collection::vec(noise, 1..8),
        prop::collection::vec(any::<prop::sample::Index>(), 0..40),
        prop::bool::weighted(0.1),
    )
        .prop_map(|(line_end, has_mark, noise, cuts, is_shredded)| Disguise {
            line_end,
            has_mark,
            noise,
            cuts,
            is_shredded,
        })
}

impl Disguise {
    fn answer(&self, stream: &str) -> Answer {
        let events = stream.split_inclusive("\n\n").zip(self.noise.iter().cycle());
        let mut text: String = events.map(|(event, noise)| noise.before(event)).collect();
        text = text.replace('\n', self.line_end);
        if self.has_mark {
            text.insert(0, '\u{feff}');
        }
        let bytes = text.as_bytes();
        if self.is_shredded {
            return Answer::chunked(&bytes.chunks(1).collect::<Vec<_>>());
        }
        let mut places: Vec<usize> = self.cuts.iter().map(|cut| cut.index(bytes.len())).collect();
        places.extend([0, bytes.len()]);
        places.sort_unstable();
        let pieces: Vec<&[u8]> = places.windows(2).map(|pair| &bytes[pair[0]..pair[1]]).collect();
        Answer::chunked(&pieces)
    }
}

async fn events(wire: Wire, answer: Answer) -> Vec<StreamEvent> {
    let server = Server::start(vec![answer]).await;
    let events = play(&*once(wire, &server.base), hello()).await.unwrap();
    without_port(events, &server.base)
}

#[test]
fn any_split_and_any_noise_gives_the_same_events() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (name, wire) in WIRES {
        let stream = recorded(name);
        let expected = runtime.block_on(events(wire, Answer::events(&stream)));
        golden(&format!("{name}_events"), &json_of(&expected));
        let mut runner =
            TestRunner::new(Config { cases: 96, failure_persistence: None, ..Config::default() });
        runner
            .run(&disguises(), |disguise| {
                let heard = runtime.block_on(events(wire, disguise.answer(&stream)));
                prop_assert_eq!(&heard, &expected, "{}", name);
                Ok(())
            })
            .unwrap();
    }
}
