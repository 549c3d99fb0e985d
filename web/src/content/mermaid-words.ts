import { count, plural, words } from "../words";

export const wm = words(
  {
    drawing: "Drawing the diagram", diagram: (kind: string) => (kind ? `Diagram: ${kind}` : "Diagram"), hint: "The arrow keys move it, plus and minus zoom, 0 fits it in.",
    zoomIn: "Zoom in", zoomOut: "Zoom out", fit: "Fit it in", full: "Full screen", source: "Show the source", picture: "Show the diagram", save: "Save", svg: "Save as SVG", png: "Save as PNG", copy: "Copy the source",
    copied: "The source is copied.", at: (percent: number) => `${percent} %`, mistake: "This diagram has a mistake", empty: "There is nothing to draw: the source is empty.", nothing: "Mermaid drew nothing of this source.",
    large: (is: number, most: number) => `The source has ${plural(is, "character")}; ${count(most)} are drawn at most. Draw it in several diagrams.`, slow: (n: number) => `It was not drawn within ${plural(n, "second")}. Draw less in one diagram.`,
    image: "Pictures in diagrams are not drawn, as getting them would tell who reads. Take the img out.",
    notSaved: "The browser could not make a picture of the diagram. Save it as SVG.",
  },
  {
    drawing: "正在绘制图表", diagram: (kind: string) => (kind ? `图表：${kind}` : "图表"), hint: "用方向键移动，加号和减号缩放，0 适应大小。",
    zoomIn: "放大", zoomOut: "缩小", fit: "适应大小", full: "全屏", source: "显示源码", picture: "显示图表", save: "保存", svg: "保存为 SVG", png: "保存为 PNG", copy: "复制源码",
    copied: "源码已复制。", at: (percent: number) => `${percent}%`, mistake: "此图表有错误", empty: "源码为空，没有可绘制的内容。", nothing: "Mermaid 没有绘制出任何内容。",
    large: (is: number, most: number) => `源码有 ${count(is)} 个字符，最多绘制 ${count(most)} 个。请拆成多个图表。`, slow: (n: number) => `${n} 秒内未能绘制完成。请减少单个图表的内容。`,
    image: "图表中的图片不会加载，以免泄露读者信息。请去掉 img。",
    notSaved: "浏览器无法生成此图表的图片。请保存为 SVG。",
  },
);
