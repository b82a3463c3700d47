export const PAGE_STYLE = `
:root { color-scheme: light dark; --line: #8886; --in: #1a7f37; --failing: #b42318; background: Canvas; }
@media (prefers-color-scheme: dark) { :root { --in: #56d364; --failing: #ff8a80; } }
* { box-sizing: border-box; }
body { margin: 0; font: 1rem/1.5 system-ui, sans-serif; }
main { max-width: 40rem; margin: 0 auto; padding: 1.5rem 1rem; }
h1 { font-size: 1.5rem; line-height: 1.25; margin: 0; overflow-wrap: anywhere; }
h2 { font-size: 1.125rem; margin: 1.5rem 0 .5rem; }
.note { margin: .25rem 0 1rem; opacity: .75; }
fieldset { margin: 1rem 0; padding: .25rem 1rem .75rem; border: 1px solid var(--line); border-radius: .375rem; }
legend { font-weight: 600; }
label { display: flex; gap: .5rem; align-items: baseline; padding: .25rem 0; }
#summary, #failure { font-weight: 600; }
#failure, #refusal { color: var(--failing); }
#sign-in { display: flex; flex-wrap: wrap; gap: .5rem; align-items: center; }
#sign-in > label, #refusal { flex: 1 0 100%; margin: 0; }
#sign-in > input { flex: 1; min-width: 0; }
#search { width: 100%; box-sizing: border-box; }
#sign-in > input, #search, button { font: inherit; min-height: 2.75rem; padding: .25rem .75rem; }
summary { padding: .75rem 0; font-weight: 600; cursor: pointer; }
ul { list-style: none; margin: 0; padding: 0; border-top: 1px solid var(--line); }
li { display: flex; flex-wrap: wrap; gap: .25rem 1rem; padding: .75rem 0; border-bottom: 1px solid var(--line); }
.who { flex: 1 1 14rem; min-width: 0; overflow-wrap: anywhere; }
.uid { display: block; font-size: .875rem; opacity: .75; }
.state { font-size: .875rem; }
.in { color: var(--in); font-weight: 600; }
`;
