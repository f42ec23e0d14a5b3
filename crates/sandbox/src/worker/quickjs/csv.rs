//! The natives behind `parseCsv` and `parseCsvRows` of `@tgp/std`.
//!
//! They are the exports of `tgp:csv`, which only the standard library can import. All memory is the engine's, so that the
//! heap cap holds, and nothing that a tool puts in the place of a built-in is asked: rows and records are made of own data
//! properties, whatever the columns are called.

use std::rc::Rc;

use rquickjs::module::{Declarations, Exports, ModuleDef};
use rquickjs::{Ctx, Error, Exception, Function, JsLifetime, Module, Result, Value, qjs};

use self::scan::{Field, ScanStop, Scanner, Watch};
use super::engine_buffer::EngineBuffer;
use crate::worker::host::Host;

mod scan;

const MODULE: &str = "tgp:csv";
const ROWS: &str = "csvRows";
const RECORDS: &str = "csvRecords";

/// Makes the module known. Its functions are made when it is first imported.
pub(super) fn declare(ctx: &Ctx<'_>, host: &Rc<Host>) -> Result<()> {
    ctx.store_userdata(Watched(Rc::clone(host))).map_err(|_| Error::Unknown)?;
    Module::declare_def::<CsvModule, _>(ctx.clone(), MODULE).map(drop)
}

/// Who knows whether the run must stop.
struct Watched(Rc<Host>);

// SAFETY: the type holds no `'js` lifetime.
unsafe impl JsLifetime<'_> for Watched {
    type Changed<'to> = Watched;
}

struct CsvModule;

impl ModuleDef for CsvModule {
    fn declare(declarations: &Declarations<'_>) -> Result<()> {
        declarations.declare(ROWS)?;
        declarations.declare(RECORDS)?;
        Ok(())
    }

    fn evaluate<'js>(ctx: &Ctx<'js>, exports: &Exports<'js>) -> Result<()> {
        let Some(host) = ctx.userdata::<Watched>().map(|watched| Rc::clone(&watched.0)) else {
            return Err(Exception::throw_message(ctx, "the prelude is not loaded"));
        };
        for (name, shape) in [(ROWS, Shape::Rows), (RECORDS, Shape::Records)] {
            let owner = Rc::clone(&host);
            let parse = move |ctx: Ctx<'js>, text: Value<'js>, separator: Value<'js>| {
                parse(&ctx, &owner, shape, &text, &separator)
            };
            exports.export(name, Function::new(ctx.clone(), parse)?.with_name(name)?)?;
        }
        Ok(())
    }
}

/// What the rows of a text become.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    /// Lists of texts.
    Rows,
    /// Objects with the names that the first row gives; rows without anything are left out.
    Records,
}

/// The rows or records; undefined when a quoted field is not closed.
fn parse<'js>(
    ctx: &Ctx<'js>,
    host: &Host,
    shape: Shape,
    text: &Value<'js>,
    separator: &Value<'js>,
) -> Result<Value<'js>> {
    // A value other than a text may run code of the tool here; afterwards nothing does.
    let (text, separator) = (Text::new(ctx, text)?, Text::new(ctx, separator)?);
    let must_stop = || host.must_stop();
    let scanner = Scanner::new(text.units(), separator.units(), Watch::new(&must_stop));
    let mut table = Table::new(ctx, scanner);
    let filled = match shape {
        Shape::Rows => table.add_rows(),
        Shape::Records => table.add_records(),
    };
    match filled {
        Ok(()) => table.rows.take_array(),
        Err(Failure::Scan(ScanStop::Unclosed)) => Ok(Value::new_undefined(ctx.clone())),
        // The engine stops at its next check, whatever the tool makes of this.
        Err(Failure::Scan(ScanStop::Limit)) => {
            Err(Exception::throw_message(ctx, "the run is over its limit"))
        }
        Err(Failure::Engine(error)) => Err(error),
    }
}

enum Failure {
    Scan(ScanStop),
    Engine(Error),
}

impl From<ScanStop> for Failure {
    fn from(stop: ScanStop) -> Self {
        Self::Scan(stop)
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Engine(error)
    }
}

type Filled<T = ()> = std::result::Result<T, Failure>;

/// What has been read so far.
struct Table<'js, 'text> {
    ctx: Ctx<'js>,
    scanner: Scanner<'text>,
    rows: Values<'js>,
    /// The row that is being read.
    row: Values<'js>,
    /// The text of a field whose pieces are apart, and the bytes of a field without wide characters.
    joined: EngineBuffer<'js, u16>,
    bytes: EngineBuffer<'js, u8>,
}

impl<'js, 'text> Table<'js, 'text> {
    fn new(ctx: &Ctx<'js>, scanner: Scanner<'text>) -> Self {
        Self {
            ctx: ctx.clone(),
            scanner,
            rows: Values::new(ctx),
            row: Values::new(ctx),
            joined: EngineBuffer::new(ctx),
            bytes: EngineBuffer::new(ctx),
        }
    }

    fn add_rows(&mut self) -> Filled {
        while let Some(field) = self.scanner.next_field()? {
            self.add_field(&field)?;
            if field.ends_row {
                let row = self.row.take_array()?;
                self.rows.push(&row)?;
            }
        }
        Ok(())
    }

    fn add_records(&mut self) -> Filled {
        let header = self.header()?;
        let nothing = self.text_of(&[])?;
        let mut fields = 0_usize;
        while let Some(field) = self.scanner.next_field()? {
            // What has no name is not asked for.
            if fields < header.atoms().len() {
                self.add_field(&field)?;
            }
            fields += 1;
            if !field.ends_row {
                continue;
            }
            if fields > 1 || !field.is_empty() {
                let record = self.record(&header, &nothing)?;
                self.rows.push(&record)?;
            }
            self.row.clear();
            fields = 0;
        }
        Ok(())
    }

    /// The names of the columns, from the first row.
    fn header(&mut self) -> Filled<Names<'js>> {
        let mut header = Names(EngineBuffer::new(&self.ctx));
        while let Some(field) = self.scanner.next_field()? {
            let name = self.field_text(&field)?;
            // SAFETY: the value is a live string, and the name belongs to the list, which gives it back.
            let atom = unsafe { qjs::JS_ValueToAtom(self.ctx.as_raw().as_ptr(), name.as_raw()) };
            if atom == qjs::JS_ATOM_NULL {
                return Err(Error::Exception.into());
            }
            if let Err(error) = header.0.push(atom) {
                // SAFETY: the name was given above and is in no list.
                unsafe { qjs::JS_FreeAtom(self.ctx.as_raw().as_ptr(), atom) };
                return Err(error.into());
            }
            if field.ends_row {
                break;
            }
        }
        Ok(header)
    }

    /// An object of the row that was read. Of columns with the same name the last one counts.
    fn record(&self, header: &Names<'js>, nothing: &Value<'js>) -> Filled<Value<'js>> {
        let raw = self.ctx.as_raw().as_ptr();
        // SAFETY: the new object belongs to the handle. Defining takes a reference of its own to each value, which is alive;
        // it asks no setter and no prototype.
        unsafe {
            let object = qjs::JS_NewObject(raw);
            if qjs::JS_IsException(object) {
                return Err(Error::Exception.into());
            }
            let record = Value::from_raw(self.ctx.clone(), object);
            let mut values = self.row.0.as_slice().iter();
            for name in header.atoms() {
                let value = values.next().copied().unwrap_or_else(|| nothing.as_raw());
                let value = qjs::JS_DupValue(raw, value);
                if qjs::JS_DefinePropertyValue(raw, object, *name, value, qjs::JS_PROP_C_W_E as i32) < 0 {
                    return Err(Error::Exception.into());
                }
            }
            Ok(record)
        }
    }

    fn add_field(&mut self, field: &Field<'text>) -> Filled {
        let value = self.field_text(field)?;
        Ok(self.row.push(&value)?)
    }

    fn field_text(&mut self, field: &Field<'text>) -> Filled<Value<'js>> {
        if !field.has_doubled && field.tail.is_empty() {
            return Ok(self.text_of(field.inner)?);
        }
        let mut joined = std::mem::replace(&mut self.joined, EngineBuffer::new(&self.ctx));
        joined.clear();
        for piece in field.pieces() {
            self.scanner.spend(piece.len() + 1)?;
            joined.extend(piece.iter().copied())?;
        }
        let text = self.text_of(joined.as_slice());
        self.joined = joined;
        Ok(text?)
    }

    /// A string with these units; like those that the engine makes itself, it has a byte for each where that is enough.
    fn text_of(&mut self, units: &[u16]) -> Result<Value<'js>> {
        let raw = self.ctx.as_raw().as_ptr();
        let widest = units.iter().fold(0, |bits, unit| bits | unit);
        // SAFETY: pointer and length describe `units` or `bytes`, which the engine only reads; the string belongs to the
        // handle.
        unsafe {
            let value = if widest > 0xff {
                qjs::JS_NewStringUTF16(raw, units.as_ptr(), units.len() as qjs::size_t)
            } else {
                self.bytes.clear();
                if widest < 0x80 {
                    self.bytes.extend(units.iter().map(|unit| *unit as u8))?;
                } else {
                    for unit in units {
                        let mut utf8 = [0; 2];
                        let utf8 = char::from(*unit as u8).encode_utf8(&mut utf8);
                        self.bytes.extend(utf8.bytes())?;
                    }
                }
                let bytes = self.bytes.as_slice();
                qjs::JS_NewStringLen(raw, bytes.as_ptr().cast(), bytes.len() as qjs::size_t)
            };
            if qjs::JS_IsException(value) {
                return Err(Error::Exception);
            }
            Ok(Value::from_raw(self.ctx.clone(), value))
        }
    }
}

/// The UTF-16 units of a value's text. A text that the engine has as bytes is copied, into its own memory.
struct Text<'js> {
    ctx: Ctx<'js>,
    units: *const u16,
    length: usize,
}

impl<'js> Text<'js> {
    fn new(ctx: &Ctx<'js>, value: &Value<'js>) -> Result<Self> {
        let mut length: qjs::size_t = 0;
        // SAFETY: the value is alive; what the engine gives stays as it is until it is given back below.
        let units = unsafe { qjs::JS_ToCStringLenUTF16(ctx.as_raw().as_ptr(), &mut length, value.as_raw()) };
        if units.is_null() {
            return Err(Error::Exception);
        }
        Ok(Self { ctx: ctx.clone(), units, length: usize::try_from(length).unwrap_or_default() })
    }

    fn units(&self) -> &[u16] {
        // SAFETY: the engine has given the pointer and the length, strings do not change, and the borrow keeps it.
        unsafe { std::slice::from_raw_parts(self.units, self.length) }
    }
}

impl Drop for Text<'_> {
    fn drop(&mut self) {
        // SAFETY: the pointer comes from JS_ToCStringLenUTF16 and is given back once.
        unsafe { qjs::JS_FreeCStringUTF16(self.ctx.as_raw().as_ptr(), self.units) };
    }
}

/// Values, each with a reference of its own.
struct Values<'js>(EngineBuffer<'js, qjs::JSValue>);

impl<'js> Values<'js> {
    fn new(ctx: &Ctx<'js>) -> Self {
        Self(EngineBuffer::new(ctx))
    }

    fn push(&mut self, value: &Value<'js>) -> Result<()> {
        self.0.push(value.as_raw())?;
        // SAFETY: the value is alive; the list has the new reference.
        unsafe { qjs::JS_DupValue(value.ctx().as_raw().as_ptr(), value.as_raw()) };
        Ok(())
    }

    /// A list of the language with the values, which are no longer here afterwards.
    fn take_array(&mut self) -> Result<Value<'js>> {
        let ctx = self.0.ctx().clone();
        let values = self.0.as_slice();
        let Ok(count) = i32::try_from(values.len()) else { return Err(Error::Allocation) };
        // SAFETY: the engine takes over the references, also when it fails.
        let array = unsafe { qjs::JS_NewArrayFrom(ctx.as_raw().as_ptr(), count, values.as_ptr()) };
        self.0.clear();
        // SAFETY: the new list belongs to the handle.
        unsafe {
            if qjs::JS_IsException(array) {
                return Err(Error::Exception);
            }
            Ok(Value::from_raw(ctx, array))
        }
    }

    fn clear(&mut self) {
        for value in self.0.as_slice() {
            // SAFETY: the list has a reference to each value, and gives up each once.
            unsafe { qjs::JS_FreeValue(self.0.ctx().as_raw().as_ptr(), *value) };
        }
        self.0.clear();
    }
}

impl Drop for Values<'_> {
    fn drop(&mut self) {
        self.clear();
    }
}

/// Names of properties that belong to this list.
struct Names<'js>(EngineBuffer<'js, qjs::JSAtom>);

impl Names<'_> {
    fn atoms(&self) -> &[qjs::JSAtom] {
        self.0.as_slice()
    }
}

impl Drop for Names<'_> {
    fn drop(&mut self) {
        for name in self.0.as_slice() {
            // SAFETY: the list has a reference to each name, and gives up each once.
            unsafe { qjs::JS_FreeAtom(self.0.ctx().as_raw().as_ptr(), *name) };
        }
    }
}
