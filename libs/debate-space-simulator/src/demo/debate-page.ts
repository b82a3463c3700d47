import { DEMO_MODES } from './demo-mode.js';
import { PAGE_SCRIPT } from './debate-page-script.js';
import { PAGE_STYLE } from './debate-page-style.js';

const MODES = Object.entries(DEMO_MODES)
  .map(([mode, words]) => `<label><input type="radio" name="mode" value="${mode}"> ${words}</label>`)
  .join('\n');

/** The page at `/`. @param nonce for the content security policy, Base64 */
export function debatePage(applicationName: string, nonce: string): string {
  const title = `Debate space of ${escapeHtml(applicationName)}`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${title}</title>
<link rel="icon" href="data:,">
<style nonce="${nonce}">${PAGE_STYLE}</style>
</head>
<body>
<main>
<h1>${title}</h1>
<p class="note">A simulator for tests and demos. Nothing here is kept.</p>
<p id="summary" role="status">Connecting …</p>
<p id="failure" role="status"></p>
<fieldset id="modes">
<legend>Simulated failures</legend>
${MODES}
</fieldset>
<form id="sign-in">
<label for="uid">Sign in to the debate space, by uid</label>
<input id="uid" name="uid" required maxlength="255" autocomplete="off" spellcheck="false">
<button>Sign in</button>
<p id="refusal" role="alert"></p>
</form>
<h2 id="users-title">Signed in</h2>
<ul id="users" aria-labelledby="users-title"></ul>
<details>
<summary id="others-title">Not signed in</summary>
<label for="search">Find</label>
<input id="search" type="search" placeholder="Name or uid" autocomplete="off" spellcheck="false">
<ul id="others" aria-labelledby="others-title"></ul>
</details>
<noscript><p>This page needs JavaScript. <a href="/simulator/state">The state as JSON</a></p></noscript>
</main>
<script nonce="${nonce}">${PAGE_SCRIPT}</script>
</body>
</html>
`;
}

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
