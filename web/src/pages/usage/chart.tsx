import { useEffect, useRef, useState } from "preact/hooks";

interface Point {
  /** The label below the chart and in the table. */
  name: string;
  value: number;
}

interface BarsProps {
  /** A text alternative for the chart. */
  title: string;
  points: Point[];
  say: (n: number) => string;
}

const height = 200;
const foot = 24;
const top = 12;

/** useWidth measures the available width. */
function useWidth() {
  const ref = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const seen = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    seen.observe(ref.current!);
    return () => seen.disconnect();
  }, []);
  return { ref, width };
}

/** roof returns a round number at or above all values, whose half is round too. */
function roof(most: number): number {
  if (most <= 0) return 1;
  const power = 10 ** Math.floor(Math.log10(most));
  return [1, 1.5, 2, 3, 4, 5, 6, 8, 10].map((n) => n * power).find((n) => n >= most) ?? most;
}

/** Bars draws values as bars. The caller must also provide a table. */
export function Bars({ title, points, say }: BarsProps) {
  const { ref, width } = useWidth();
  const ceiling = roof(Math.max(0, ...points.map((p) => p.value)));
  const label = Math.max(...[0, ceiling / 2, ceiling].map((n) => say(n).length)) * 8 + 12;
  const plot = Math.max(0, width - label);
  const step = points.length ? plot / points.length : 0;
  const y = (n: number) => top + (height - top - foot) * (1 - n / ceiling);
  return (
    <div ref={ref} class="usage-chart">
      {width > 0 && (
        <svg width={width} height={height} role="img" aria-label={title}>
          {[0, ceiling / 2, ceiling].map((n) => (
            <g key={n}>
              <line x1={label} x2={width} y1={y(n)} y2={y(n)} class="usage-grid" />
              <text x={label - 8} y={y(n) + 4} text-anchor="end">
                {say(n)}
              </text>
            </g>
          ))}
          {points.map((p, i) => (
            <g key={p.name}>
              <rect x={label + i * step} y={top} width={step} height={height - top - foot} class="usage-hit">
                <title>{`${p.name}: ${say(p.value)}`}</title>
              </rect>
              {p.value > 0 && (
                <rect
                  x={label + i * step + step * 0.15}
                  width={Math.max(1, step * 0.7)}
                  y={Math.min(y(p.value), y(0) - 2)}
                  height={Math.max(2, y(0) - y(p.value))}
                  rx={Math.min(2, step * 0.2)}
                  class="usage-bar"
                />
              )}
            </g>
          ))}
          {marks(points.length, plot).map((i) => (
            <text
              key={i}
              x={label + (i + (i === points.length - 1 ? 1 : 0.5)) * step}
              y={height - 6}
              text-anchor={i === points.length - 1 ? "end" : "middle"}
            >
              {points[i]?.name}
            </text>
          ))}
        </svg>
      )}
    </div>
  );
}

/** marks returns the points that get a label: the last one, and earlier ones at the same distance. */
function marks(n: number, width: number): number[] {
  const apart = Math.max(1, Math.ceil((n * 100) / Math.max(width, 100)));
  return Array.from({ length: Math.ceil(n / apart) }, (_, i) => n - 1 - i * apart);
}

/** Share draws a value as a bar relative to the highest one. The cell beside it has the number. */
export function Share({ value, most }: { value: number; most: number }) {
  return (
    <svg class="usage-share" viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true" focusable="false">
      <rect width="100" height="8" class="usage-track" />
      <rect width={most > 0 ? Math.max(value > 0 ? 1 : 0, (100 * value) / most) : 0} height="8" class="usage-bar" />
    </svg>
  );
}
