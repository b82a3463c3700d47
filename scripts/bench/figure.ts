import { writeFileSync } from 'node:fs';
import { LineChart } from 'echarts/charts';
import { GridComponent, LegendComponent, TitleComponent } from 'echarts/components';
import { init, use } from 'echarts/core';
import { SVGRenderer } from 'echarts/renderers';

const FOLDER = new URL('../../docs/pictures/', import.meta.url);
const SIZE = { width: 720, height: 400 };

export interface Line {
  readonly name: string;
  /** One for each point of the figure. */
  readonly values: readonly number[];
}

export interface Figure {
  readonly title: string;
  readonly unit: string;
  readonly isLogarithmic: boolean;
  readonly points: readonly string[];
  readonly lines: readonly Line[];
}

/** Draws a line chart for docs/performance.md. */
export function writeFigure(file: string, { title, unit, isLogarithmic, points, lines }: Figure): void {
  use([LineChart, GridComponent, LegendComponent, TitleComponent, SVGRenderer]);
  const chart = init(null, null, { renderer: 'svg', ssr: true, ...SIZE });
  chart.setOption({
    animation: false,
    backgroundColor: '#fff',
    title: { text: title, left: 'center', textStyle: { fontSize: 15 } },
    legend: { bottom: 0 },
    grid: { top: 60, bottom: 60, left: 70, right: 30 },
    xAxis: { type: 'category', data: points },
    yAxis: { type: isLogarithmic ? 'log' : 'value', name: unit },
    series: lines.map(({ name, values }) => ({ type: 'line', name, data: values })),
  });
  writeFileSync(new URL(file, FOLDER), chart.renderToSVGString());
  chart.dispose();
  console.log(`\ndocs/pictures/${file} is written`);
}
