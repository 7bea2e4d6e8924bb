//! A plot as SVG text that reads on light and dark ground. Decides looks only.

use std::fmt::Write as _;

const WIDTH: f64 = 880.0;
const HEIGHT: f64 = 380.0;
const LEFT: f64 = 60.0;
const RIGHT: f64 = 16.0;
const TOP: f64 = 56.0;
const BOTTOM: f64 = 52.0;

/// One line of a plot.
#[derive(Debug, Clone)]
pub struct Curve {
    /// Its name in the legend.
    pub name: String,
    /// Colours on light and dark ground.
    pub colours: (&'static str, &'static str),
    /// Dashed, for what is given rather than measured.
    pub dashed: bool,
    /// Points by x, then y.
    pub points: Vec<(f64, f64)>,
}

/// A plot from 0 on both axes.
#[derive(Debug, Clone)]
pub struct Plot {
    /// Above the plot.
    pub title: String,
    /// Below the x axis, with its unit.
    pub x: String,
    /// Beside the y axis, with its unit.
    pub y: String,
    /// Drawn in order.
    pub curves: Vec<Curve>,
}

impl Plot {
    /// The whole file.
    #[must_use]
    pub fn svg(&self) -> String {
        let most = |of: fn(&(f64, f64)) -> f64| {
            self.curves.iter().flat_map(|curve| &curve.points).map(of).fold(1.0, f64::max)
        };
        let scale = Scale { x: Axis::to(most(|p| p.0)), y: Axis::to(most(|p| p.1)) };
        let mut svg = self.head();
        scale.draw_axes(&mut svg);
        for (i, curve) in self.curves.iter().enumerate() {
            curve.draw(&mut svg, i, &scale);
        }
        svg.push_str("</svg>\n");
        svg
    }

    fn head(&self) -> String {
        let rules = |dark: bool| -> String {
            let colour = |c: &Curve| if dark { c.colours.1 } else { c.colours.0 };
            let (ink, grid) = if dark { ("#d0d7de", "#3d444d") } else { ("#24292f", "#d8dee4") };
            let curves = self.curves.iter().enumerate();
            let curves: String = curves.map(|(i, c)| format!(".c{i}{{stroke:{}}}", colour(c))).collect();
            format!("text{{fill:{ink}}}.grid{{stroke:{grid}}}{curves}")
        };
        let middle = TOP + (HEIGHT - TOP - BOTTOM) / 2.0;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\">\n\
             <title>{title}</title>\n\
             <style>text{{font:13px system-ui,sans-serif}}path{{fill:none;stroke-width:2}}{light}\
             @media(prefers-color-scheme:dark){{{dark}}}</style>\n\
             <text x=\"{LEFT}\" y=\"20\" style=\"font-weight:600\">{title}</text>\n\
             <text x=\"{x_middle}\" y=\"{x_line}\" text-anchor=\"middle\">{x}</text>\n\
             <text transform=\"translate(16 {middle}) rotate(-90)\" text-anchor=\"middle\">{y}</text>\n",
            title = escaped(&self.title),
            light = rules(false),
            dark = rules(true),
            x_middle = LEFT + (WIDTH - LEFT - RIGHT) / 2.0,
            x_line = HEIGHT - 12.0,
            x = escaped(&self.x),
            y = escaped(&self.y),
        )
    }
}

impl Curve {
    fn draw(&self, svg: &mut String, index: usize, scale: &Scale) {
        let dash = if self.dashed { " stroke-dasharray=\"6 5\"" } else { "" };
        let mut path = String::new();
        for (i, (x, y)) in self.points.iter().enumerate() {
            let _ = write!(path, "{}{:.1} {:.1}", if i == 0 { 'M' } else { 'L' }, scale.x(*x), scale.y(*y));
        }
        let at = LEFT + index as f64 * 200.0;
        let _ = write!(
            svg,
            "<path class=\"c{index}\" d=\"{path}\"{dash}/>\n\
             <path class=\"c{index}\" d=\"M{at} 38h24\"{dash}/><text x=\"{}\" y=\"42\">{}</text>\n",
            at + 32.0,
            escaped(&self.name)
        );
    }
}

struct Axis {
    most: f64,
    tick: f64,
}

impl Axis {
    /// Ticks at 1, 2 or 5 times a power of ten, six at most, and the end at the tick after `most`.
    fn to(most: f64) -> Self {
        let power = 10f64.powf((most / 6.0).log10().floor());
        let fits = |step: &f64| most / (step * power) <= 6.0;
        let tick = [1.0, 2.0, 5.0].into_iter().find(fits).unwrap_or(10.0) * power;
        Self { most: (most / tick).ceil() * tick, tick }
    }

    fn ticks(&self) -> impl Iterator<Item = f64> + '_ {
        (0..=(self.most / self.tick).round() as u32).map(|n| f64::from(n) * self.tick)
    }
}

struct Scale {
    x: Axis,
    y: Axis,
}

impl Scale {
    fn x(&self, x: f64) -> f64 {
        LEFT + x / self.x.most * (WIDTH - LEFT - RIGHT)
    }

    fn y(&self, y: f64) -> f64 {
        HEIGHT - BOTTOM - y / self.y.most * (HEIGHT - TOP - BOTTOM)
    }

    fn draw_axes(&self, svg: &mut String) {
        let (right, floor) = (WIDTH - RIGHT, HEIGHT - BOTTOM);
        for tick in self.y.ticks() {
            let y = self.y(tick);
            let _ = writeln!(
                svg,
                "<path class=\"grid\" style=\"stroke-width:1\" d=\"M{LEFT} {y:.1}H{right}\"/>\
                 <text x=\"{}\" y=\"{:.1}\" text-anchor=\"end\">{tick}</text>",
                LEFT - 8.0,
                y + 4.0
            );
        }
        for tick in self.x.ticks() {
            let (x, y) = (self.x(tick), floor + 18.0);
            let _ = writeln!(svg, "<text x=\"{x:.1}\" y=\"{y}\" text-anchor=\"middle\">{tick}</text>");
        }
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(most: f64, end: f64, ticks: usize) {
        let axis = Axis::to(most);
        assert_eq!((axis.most, axis.ticks().count()), (end, ticks), "{most}");
    }

    #[test]
    fn axes_end_at_a_round_number() {
        check(60.0, 60.0, 7);
        check(51.0, 60.0, 7);
        check(100.0, 100.0, 6);
        check(1234.0, 1500.0, 4);
        check(1.0, 1.0, 6);
    }

    #[test]
    fn a_plot_is_well_formed_and_escaped() {
        let curve = Curve {
            name: "a < b".to_string(),
            colours: ("#000", "#fff"),
            dashed: true,
            points: vec![(0.0, 0.0), (10.0, 5.0)],
        };
        let plot = Plot { title: "t".into(), x: "x".into(), y: "y".into(), curves: vec![curve] };
        let svg = plot.svg();
        assert!(
            svg.contains("a &lt; b") && svg.contains("prefers-color-scheme:dark") && !svg.contains("NaN")
        );
        assert_eq!(svg.matches("<text").count(), svg.matches("</text>").count());
    }
}
