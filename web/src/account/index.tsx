export default function Door() {
  return <div class="door">…</div>;
}
