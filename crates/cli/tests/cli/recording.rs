//! The picture of a session in the README: what the program prints at a terminal, with its colours.
//! `UPDATE_GOLDEN=1 cargo test -p tgp-cli recording` plays it again and writes it.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::project::Project;
use crate::pty::Terminal;

/// A session that a newcomer can repeat: a tool is written, checked, run, misused, found again, and on record.
const SESSION: [&str; 6] = [
    "tgp write tools/double.ts --content '/** Doubles a number. */ export default (args: { n: number }): number => args.n * 2;'",
    "tgp check",
    "tgp exec tools/double.ts --args '{\"n\": 21}'",
    "tgp exec tools/double.ts --args '{\"n\": \"twenty\"}'",
    "tgp search multiply a number by two",
    "tgp audit verify",
];

const COLUMNS: u16 = 80;
const ROWS: u16 = 60;
/// A character of the picture, in pixels.
const WIDTH: usize = 9;
const HEIGHT: usize = 20;
const MARGIN: usize = 18;

#[test]
fn the_recorded_session_is_what_the_program_prints() {
    let project = Project::initialised();
    let mut lines = Vec::new();
    for command in SESSION {
        lines.extend(wrapped(command));
        let mut shell = project.program("sh");
        shell.args(["-c", command]);
        let (code, screen) = Terminal::start(shell).finish();
        assert!(matches!(code, Some(0..=2)), "{command}: {code:?}\n{screen}");
        lines.extend(shown(&screen));
        lines.push(Vec::new());
    }
    let picture = svg(&lines);
    let file = picture_file();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&file, &picture).unwrap();
        return;
    }
    let recorded = std::fs::read_to_string(&file).unwrap();
    let difference = similar::TextDiff::from_lines(&recorded, &picture);
    let difference = difference.unified_diff().header("recorded", "printed").to_string();
    assert!(difference.is_empty(), "record it again with UPDATE_GOLDEN=1\n{difference}");
}

fn picture_file() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/images/session.svg")
}

/// A piece of a line in one colour.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Piece {
    text: String,
    colour: &'static str,
    is_bold: bool,
}

/// A command as it is typed, in lines of the terminal.
fn wrapped(command: &str) -> Vec<Vec<Piece>> {
    let prompt = |text: &str| Piece { text: text.to_owned(), colour: "#7ee787", is_bold: true };
    let typed = |text: String| Piece { text, colour: "#ffffff", is_bold: true };
    let characters: Vec<char> = command.chars().collect();
    let pieces = characters.chunks(usize::from(COLUMNS) - 2).map(|part| typed(part.iter().collect()));
    pieces
        .enumerate()
        .map(|(number, piece)| vec![prompt(if number == 0 { "$ " } else { "  " }), piece])
        .collect()
}

/// What a terminal shows after these bytes.
fn shown(bytes: &str) -> Vec<Vec<Piece>> {
    let mut terminal = vt100::Parser::new(ROWS, COLUMNS, 0);
    terminal.process(bytes.replace('\n', "\r\n").as_bytes());
    let screen = terminal.screen();
    let mut lines: Vec<Vec<Piece>> = (0..ROWS).map(|row| line(screen, row)).collect();
    while lines.last().is_some_and(Vec::is_empty) {
        lines.pop();
    }
    lines
}

fn line(screen: &vt100::Screen, row: u16) -> Vec<Piece> {
    let mut pieces: Vec<Piece> = Vec::new();
    for column in 0..COLUMNS {
        let Some(cell) = screen.cell(row, column) else { continue };
        let text = if cell.has_contents() { cell.contents().to_owned() } else { " ".to_owned() };
        let (colour, is_bold) = (colour(cell.fgcolor(), cell.dim()), cell.bold());
        match pieces.last_mut() {
            Some(last) if last.colour == colour && last.is_bold == is_bold => last.text += &text,
            _ => pieces.push(Piece { text, colour, is_bold }),
        }
    }
    while let Some(last) = pieces.last_mut() {
        last.text.truncate(last.text.trim_end().len());
        if !last.text.is_empty() {
            break;
        }
        pieces.pop();
    }
    hide(pieces)
}

/// Colours of a dark terminal.
fn colour(colour: vt100::Color, is_dim: bool) -> &'static str {
    match colour {
        _ if is_dim => "#8b949e",
        vt100::Color::Idx(1 | 9) => "#ff7b72",
        vt100::Color::Idx(2 | 10) => "#7ee787",
        vt100::Color::Idx(3 | 11) => "#e3b341",
        vt100::Color::Idx(4 | 12) => "#79c0ff",
        vt100::Color::Idx(5 | 13) => "#d2a8ff",
        vt100::Color::Idx(6 | 14) => "#76e3ea",
        vt100::Color::Idx(8) => "#8b949e",
        _ => "#c9d1d9",
    }
}

/// Hashes differ from run to run; the picture has one that stands for them.
fn hide(mut pieces: Vec<Piece>) -> Vec<Piece> {
    for piece in &mut pieces {
        let words: Vec<String> = piece.text.split(' ').map(without_hash).collect();
        piece.text = words.join(" ");
    }
    pieces
}

fn without_hash(word: &str) -> String {
    let digits = word.trim_end_matches([',', '.', ';', ')']);
    let is_hash = digits.len() >= 8
        && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
        && digits.bytes().any(|byte| byte.is_ascii_digit());
    if !is_hash {
        return word.to_owned();
    }
    let shown: String = "2c8db17f".chars().cycle().take(digits.len()).collect();
    word.replacen(digits, &shown, 1)
}

fn svg(lines: &[Vec<Piece>]) -> String {
    let width = usize::from(COLUMNS) * WIDTH + 2 * MARGIN;
    let height = lines.len() * HEIGHT + 2 * MARGIN;
    let mut picture = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" \
         font-family=\"ui-monospace, 'DejaVu Sans Mono', Menlo, Consolas, monospace\" font-size=\"15\">\n\
         <title>A session: a tool is written, checked, run, found again, and its calls are on record</title>\n\
         <rect width=\"{width}\" height=\"{height}\" rx=\"8\" fill=\"#0d1117\"/>\n"
    );
    for (number, line) in lines.iter().enumerate().filter(|(_, line)| !line.is_empty()) {
        let baseline = MARGIN + number * HEIGHT + 15;
        write!(picture, "<text y=\"{baseline}\" xml:space=\"preserve\">").unwrap();
        let mut column = 0;
        for piece in line {
            let weight = if piece.is_bold { " font-weight=\"bold\"" } else { "" };
            let (x, length) = (MARGIN + column * WIDTH, piece.text.chars().count() * WIDTH);
            let text = piece.text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
            write!(
                picture,
                "<tspan x=\"{x}\" textLength=\"{length}\" fill=\"{}\"{weight}>{text}</tspan>",
                piece.colour
            )
            .unwrap();
            column += piece.text.chars().count();
        }
        picture += "</text>\n";
    }
    picture + "</svg>\n"
}
