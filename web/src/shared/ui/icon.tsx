/** The paths of the icons, on a 24 by 24 grid. */
const paths = {
  chat: "M4 5h16v11H9l-5 4z",
  library: "M4 4h5v16H4zM10 4h5v16h-5zM16.5 5l4 .8L18 20l-3-.6",
  compose: "M4 20l1-4L16 5l3 3L8 19zM14 7l3 3",
  agents: "M12 3v3M6 8h12v10H6zM9 12h.01M15 12h.01M9.5 15.5h5M3 12v3M21 12v3",
  servers: "M4 5h16v6H4zM4 13h16v6H4zM7.5 8h.01M7.5 16h.01",
  asks: "M12 3a6 6 0 0 0-6 6v5l-2 3h16l-2-3V9a6 6 0 0 0-6-6zM10 20a2 2 0 0 0 4 0",
  usage: "M4 20V4M4 20h16M8 16v-4M12 16V8M16 16v-6",
  audit: "M6 3h9l4 4v14H6zM14 3v5h5M9 12h7M9 16h7",
  settings: "M4 7h10M18 7h2M4 17h2M10 17h10M16 5v4M8 15v4",
  admin: "M12 3l8 3v6c0 5-3.5 8-8 9-4.5-1-8-4-8-9V6z",
  review: "M4 12l5 5L20 6",
  plus: "M12 5v14M5 12h14",
  close: "M6 6l12 12M18 6L6 18",
  check: "M5 12l5 5L19 7",
  down: "M6 9l6 6 6-6",
  right: "M9 6l6 6-6 6",
  left: "M15 6l-6 6 6 6",
  up: "M6 15l6-6 6 6",
  grid: "M4 4h7v7H4zM13 4h7v7h-7zM4 13h7v7H4zM13 13h7v7h-7z",
  menu: "M4 7h16M4 12h16M4 17h16",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  search: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20",
  copy: "M8 8h12v12H8zM16 8V4H4v12h4",
  pin: "M9 4h6l-1 6 3 3v2H7v-2l3-3zM12 15v6",
  trash: "M5 7h14M10 4h4M7 7l1 13h8l1-13M10 11v5M14 11v5",
  download: "M12 4v11M7 11l5 5 5-5M4 20h16",
  upload: "M12 16V5M7 9l5-5 5 5M4 20h16",
  file: "M6 3h8l4 4v14H6zM14 3v4h4",
  folder: "M3 6h6l2 2h10v11H3z",
  play: "M7 5l12 7-12 7z",
  stop: "M6 6h12v12H6z",
  send: "M4 12l16-8-6 16-3-7z",
  warn: "M12 4l9 16H3zM12 10v4M12 17h.01",
  info: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM12 11v5M12 8h.01",
  star: "M12 4l2.4 5 5.6.7-4.1 3.8 1.1 5.5-5-2.8-5 2.8 1.1-5.5L4 9.7 9.6 9z",
  link: "M10 14a4 4 0 0 0 5.7 0l3-3a4 4 0 0 0-5.7-5.7l-1 1M14 10a4 4 0 0 0-5.7 0l-3 3A4 4 0 0 0 11 18.700l1-1",
  again: "M20 12a8 8 0 1 1-2.3-5.7M20 4v5h-5",
  branch: "M7 4v16M7 15a8 8 0 0 0 9-8M13.500 9.500L16 7l2.500 2.500",
  tool: "M14 6a4 4 0 0 0-5 5l-6 6 3 3 6-6a4 4 0 0 0 5-5l-2.5 2.500L12 9z",
  eye: "M2 12s4-7 10-7 10 7 10 7-4 7-10 7-10-7-10-7zM12 9a3 3 0 1 0 0 6 3 3 0 0 0 0-6z",
  lock: "M6 11h12v9H6zM9 11V8a3 3 0 0 1 6 0v3",
  key: "M8 11a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM11 12l9-8M16 8l3 3",
  people: "M9 5a3 3 0 1 0 0 6 3 3 0 0 0 0-6zM3 20c0-4 2.500-6 6-6s6 2 6 6M16 6a3 3 0 0 1 0 6M18 14c2 .8 3 3 3 6",
  sun: "M12 8a4 4 0 1 0 0 8 4 4 0 0 0 0-8zM12 2v3M12 19v3M2 12h3M19 12h3M5 5l2 2M17 17l2 2M19 5l-2 2M7 17l-2 2",
  globe: "M12 3a9 9 0 1 0 0 18 9 9 0 0 0 0-18zM3 12h18M12 3c3 3 3 15 0 18M12 3c-3 3-3 15 0 18",
  zoom: "M10.5 4a6.5 6.5 0 1 0 0 13 6.5 6.5 0 0 0 0-13zM15.5 15.5L20 20M10.5 8v5M8 10.500h5",
} as const;

export type IconName = keyof typeof paths;

/** Icon is a decorative icon. An icon without text needs a label on its parent. */
export function Icon({ name, size = 18 }: { name: IconName; size?: number }) {
  return (
    <svg
      width={size}
      height={size}
      viewBox="0 0 24 24"
      fill="none"
      stroke="currentColor"
      stroke-width="1.75"
      stroke-linecap="round"
      stroke-linejoin="round"
      aria-hidden="true"
      focusable="false"
    >
      <path d={paths[name]} />
    </svg>
  );
}

/** Logo is the sign of Loadout, as in icon.svg. It is drawn without a request. */
export const Logo = ({ size }: { size: number }) => (
  <svg viewBox="0 0 32 32" width={size} height={size} aria-hidden="true">
    <rect width="32" height="32" rx="7" fill="#0b6e69" />
    <path d="M9 7.5h4.2v13H23v4H9z" fill="#fff" />
    <circle cx="20.5" cy="11" r="3.5" fill="#9fe3dc" />
  </svg>
);
