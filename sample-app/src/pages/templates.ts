import { relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import type { NestExpressApplication } from '@nestjs/platform-express';
import { Eta } from 'eta';

// The same from src/pages and from dist/pages: the templates are beside both.
const VIEWS = fileURLToPath(new URL('../../views', import.meta.url));
const PUBLIC = fileURLToPath(new URL('../../public', import.meta.url));

/** Pages out of `views/`, escaped by default, and what they need out of `public/`. All pages are given the `shared` data. */
export function useTemplates(app: NestExpressApplication, shared: Readonly<Record<string, unknown>>): void {
  const eta = new Eta({ views: VIEWS, autoEscape: true, cache: true });
  app.engine('eta', (path: string, data: object, done: (error: unknown, html?: string) => void) => {
    try {
      done(null, eta.render(relative(VIEWS, path), data));
    } catch (error) {
      done(error);
    }
  });
  app.setBaseViewsDir(VIEWS);
  app.setViewEngine('eta');
  for (const [name, value] of Object.entries(shared)) app.setLocal(name, value);
  app.useStaticAssets(PUBLIC);
}
