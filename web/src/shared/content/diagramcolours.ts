import { dark } from "../ui/theme";

/** paint returns the page's colors under Mermaid's names. */
export function paint() {
  const style = getComputedStyle(document.documentElement);
  const is = (token: string) => style.getPropertyValue(`--${token}`).trim();
  const [text, muted, surface, line] = [is("text"), is("muted"), is("surface"), is("line-strong")];
  return {
    darkMode: dark.value,
    fontFamily: is("font"),
    fontSize: "15px",
    background: surface,
    textColor: text,
    titleColor: text,
    lineColor: muted,
    primaryColor: is("accent-soft"),
    primaryTextColor: text,
    primaryBorderColor: is("accent"),
    secondaryColor: is("sunken"),
    secondaryTextColor: text,
    secondaryBorderColor: line,
    tertiaryColor: is("warn-soft"),
    tertiaryTextColor: text,
    tertiaryBorderColor: is("warn"),
    clusterBkg: is("sunken"),
    clusterBorder: line,
    edgeLabelBackground: surface,
    noteBkgColor: is("warn-soft"),
    noteTextColor: text,
    noteBorderColor: is("warn"),
    errorBkgColor: is("bad-soft"),
    errorTextColor: is("bad"),
    ...many(["accent-soft", "warn-soft", "good-soft", "bad-soft", "sunken", "line"].map(is), 12, (n, colour) => ({
      [`cScale${n}`]: colour,
      [`cScaleLabel${n}`]: text,
      [`cScalePeer${n}`]: line,
      [`cScaleInv${n}`]: line,
      [`fillType${n}`]: colour,
    })),
    ...many(
      ["accent", "warn", "good", "bad", "code-name", "code-keyword", "code-number", "muted"].map(is),
      12,
      (n, colour) => ({ [`git${n}`]: colour, [`gitBranchLabel${n}`]: is("on-accent"), [`pie${n + 1}`]: colour }),
    ),
    pieSectionTextColor: is("on-accent"),
    pieStrokeColor: surface,
    pieOuterStrokeColor: line,
    pieOpacity: "1",
    pieTitleTextColor: text,
    pieLegendTextColor: text,
    critBkgColor: is("bad-soft"),
    critBorderColor: is("bad"),
    doneTaskBkgColor: is("sunken"),
    doneTaskBorderColor: line,
    activeTaskBkgColor: is("good-soft"),
    activeTaskBorderColor: is("good"),
    taskTextDarkColor: text,
    taskTextColor: text,
    taskTextOutsideColor: text,
    gridColor: is("line"),
    sectionBkgColor: is("sunken"),
    altSectionBkgColor: surface,
    sectionBkgColor2: is("sunken"),
    todayLineColor: is("bad"),
    commitLabelColor: text,
    commitLabelBackground: is("sunken"),
    tagLabelColor: text,
    tagLabelBackground: is("accent-soft"),
    tagLabelBorder: is("accent"),
    xyChart: {
      backgroundColor: surface,
      titleColor: text,
      xAxisLabelColor: text,
      xAxisTitleColor: text,
      xAxisTickColor: muted,
      xAxisLineColor: muted,
      yAxisLabelColor: text,
      yAxisTitleColor: text,
      yAxisTickColor: muted,
      yAxisLineColor: muted,
      plotColorPalette: ["accent", "warn", "bad", "good"].map(is).join(","),
    },
  };
}

function many(
  colours: string[],
  n: number,
  names: (n: number, colour: string) => Record<string, string>,
): Record<string, string> {
  return Object.assign({}, ...Array.from({ length: n }, (_, i) => names(i, colours[i % colours.length]!)));
}
