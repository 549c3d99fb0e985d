import { msg } from "../i18n/messages";
/** sized parses a drawing and returns its size. */
export function sized(svg: string): { svg: SVGSVGElement; width: number; height: number } {
  const root = new DOMParser().parseFromString(svg, "image/svg+xml").documentElement as unknown as SVGSVGElement;
  const [, , w, h] = (root.getAttribute("viewBox") ?? "").split(/[\s,]+/).map(Number);
  const of = (name: string) =>
    /^[\d.]+(px)?$/.test(root.getAttribute(name) ?? "") ? parseFloat(root.getAttribute(name)!) : 0;
  const [width, height] = [w || of("width") || 600, h || of("height") || 400];
  if (!root.hasAttribute("viewBox")) root.setAttribute("viewBox", `0 0 ${width} ${height}`);
  return { svg: root, width, height };
}

/** alone returns a drawing as a standalone file with size and background. */
function alone(svg: string): { text: string; width: number; height: number } {
  const drawing = sized(svg);
  drawing.svg.setAttribute("width", String(drawing.width));
  drawing.svg.setAttribute("height", String(drawing.height));
  drawing.svg.style.maxWidth = "";
  drawing.svg.style.background = getComputedStyle(document.documentElement).getPropertyValue("--surface").trim();
  return { ...drawing, text: new XMLSerializer().serializeToString(drawing.svg) };
}

export function saveSVG(svg: string, name: string) {
  save(new Blob([alone(svg).text], { type: "image/svg+xml" }), `${name}.svg`);
}

/** The maximum side of a picture in pixels, as browsers refuse larger ones. */
const largest = 8000;

export async function savePNG(svg: string, name: string) {
  const { text, width, height } = alone(svg);
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(text)}`;
  await image.decode();
  const scale = Math.min(2, largest / width, largest / height);
  const canvas = document.createElement("canvas");
  canvas.width = Math.ceil(width * scale);
  canvas.height = Math.ceil(height * scale);
  canvas.getContext("2d")?.drawImage(image, 0, 0, canvas.width, canvas.height);
  const blob = await new Promise<Blob | null>((done) => canvas.toBlob(done, "image/png"));
  if (!blob) throw new Error(msg("diagram.notSaved"));
  save(blob, `${name}.png`);
}

function save(blob: Blob, name: string) {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = name;
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
