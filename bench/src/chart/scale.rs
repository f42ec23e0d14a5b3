//! A logarithmic axis.

/// Maps values between two bounds to a stretch of the picture.
#[derive(Clone, Copy, Debug)]
pub struct LogScale {
    low: f64,
    high: f64,
    from: f64,
    to: f64,
}

impl LogScale {
    /// A scale that holds all values, which must be positive; from the position `from` to the position `to`.
    pub fn over(values: impl Iterator<Item = f64>, from: f64, to: f64) -> Option<Self> {
        let usable = values.filter(|value| value.is_finite() && *value > 0.0);
        let bounds = usable.fold(None, |bounds: Option<(f64, f64)>, value| {
            let (low, high) = bounds.unwrap_or((value, value));
            Some((low.min(value), high.max(value)))
        });
        let (low, high) = bounds?;
        // A little room, also where all values are one.
        Some(Self { low: low / 1.25, high: high * 1.25, from, to })
    }

    pub fn position(&self, value: f64) -> f64 {
        let share = (value.max(self.low) / self.low).ln() / (self.high / self.low).ln();
        self.from + share.clamp(0.0, 1.0) * (self.to - self.from)
    }

    /// Round values within the bounds: powers of ten, with others between them where there would be few.
    pub fn ticks(&self) -> Vec<f64> {
        let steps: &[f64] = match self.high / self.low {
            span if span > 200.0 => &[1.0],
            span if span > 8.0 => &[1.0, 2.0, 5.0],
            _ => &[1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 7.0],
        };
        let mut power = 10_f64.powf(self.low.log10().floor());
        let mut ticks = Vec::new();
        while power <= self.high {
            ticks.extend(steps.iter().map(|step| step * power));
            power *= 10.0;
        }
        ticks.retain(|tick| (self.low..=self.high).contains(tick));
        ticks
    }
}

#[cfg(test)]
mod tests {
    use super::LogScale;

    #[test]
    fn equal_factors_are_equal_distances() {
        let scale = LogScale::over([1.0, 100.0].into_iter(), 0.0, 100.0).unwrap();
        let [one, ten, hundred] = [1.0, 10.0, 100.0].map(|value| scale.position(value));
        assert!(((ten - one) - (hundred - ten)).abs() < 0.001);
        assert!(one > 0.0 && hundred < 100.0);
        assert_eq!(scale.ticks(), [1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0]);
    }

    #[test]
    fn nothing_to_show_has_no_scale() {
        assert!(LogScale::over([f64::NAN, 0.0].into_iter(), 0.0, 1.0).is_none());
        let one = LogScale::over([3.0].into_iter(), 0.0, 1.0).unwrap();
        assert!((one.position(3.0) - 0.5).abs() < 0.001);
        assert_eq!(one.ticks(), [3.0]);
    }
}
