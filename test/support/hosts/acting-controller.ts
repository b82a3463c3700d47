import {
  Body,
  Controller,
  Get,
  Inject,
  Post,
  Req,
  Res,
  Sse,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type ValueProvider,
} from '@nestjs/common';
import { NEVER, concat, of, type Observable } from 'rxjs';

/** What the routes of a test's host do. The types are those of the platform. */
export interface ActingScenario<Request, Response> {
  readonly act: (request: Request, response: Response) => unknown;
  readonly logIn: (request: Request, response: Response, uid: string) => unknown;
  readonly uidIn: (request: Request, response: Response) => string | undefined | Promise<string | undefined>;
  /** Answers, unless the act has done so. */
  readonly finish: (response: Response) => unknown;
}

const SCENARIO = Symbol('scenario');
type AnyScenario = ActingScenario<unknown, unknown>;

export function providerOf<Request, Response>(scenario: ActingScenario<Request, Response>): ValueProvider {
  return { provide: SCENARIO, useValue: scenario };
}

class ActingGuard implements CanActivate {
  constructor(@Inject(SCENARIO) private readonly scenario: AnyScenario) {}

  async canActivate(context: ExecutionContext): Promise<boolean> {
    const http = context.switchToHttp();
    await this.scenario.act(http.getRequest(), http.getResponse());
    return false;
  }
}

/** Routes that log in, say who is logged in, and act: on any platform. */
@Controller(['', 'youth'])
export class ActingController {
  constructor(@Inject(SCENARIO) private readonly scenario: AnyScenario) {}

  @Post('login')
  async login(
    @Req() request: unknown,
    @Res({ passthrough: true }) response: unknown,
    @Body('uid') uid: string,
  ): Promise<string> {
    await this.scenario.logIn(request, response, uid);
    return `hello ${uid}`;
  }

  @Get('whoami')
  async whoami(@Req() request: unknown, @Res({ passthrough: true }) response: unknown): Promise<string> {
    return (await this.scenario.uidIn(request, response)) ?? 'nobody';
  }

  @Post('act')
  async act(@Req() request: unknown, @Res() response: unknown): Promise<void> {
    await this.scenario.act(request, response);
    await this.scenario.finish(response);
  }

  @Post('act-guarded')
  @UseGuards(ActingGuard)
  actGuarded(): string {
    return 'never';
  }

  @Sse('act-events')
  async actEvents(
    @Req() request: unknown,
    @Res({ passthrough: true }) response: unknown,
  ): Promise<Observable<{ data: string }>> {
    await this.scenario.act(request, response);
    return concat(of({ data: 'done' }), NEVER);
  }
}
