// Paints rectangles of a JPEG black without decoding the JPEG to pixels. The coefficients are read and written again,
// and the coefficients of covered blocks are written as black. Only a baseline JPEG is accepted, so that no picture
// passes unmasked.
import { BitReader, BitWriter, decodeTableOf, type HuffmanCode, standardCodes } from './jpeg-huffman.ts';

export interface Rect {
  readonly x: number;
  readonly y: number;
  readonly width: number;
  readonly height: number;
}

const SOF0 = 0xc0;
const DHT = 0xc4;
const SOS = 0xda;
const DQT = 0xdb;
const DRI = 0xdd;
const BLOCK_PIXELS = 8;
const COEFFICIENTS_PER_BLOCK = 64;
/** The DC value of a black block: 8 times the difference between black and medium gray. */
const BLACK_DC = -1024;

interface Component {
  readonly id: number;
  readonly horizontalSampling: number;
  readonly verticalSampling: number;
  readonly quantizer: number;
  readonly isLuma: boolean;
  dc: number;
  ac: number;
}

interface Layout {
  readonly width: number;
  readonly height: number;
  readonly components: Component[];
  readonly tables: Map<number, Uint16Array>;
  readonly quantizers: Map<number, number>;
  /**
   * The JPEG segments before the scan that are kept unchanged. `scanHead`: the new scan header. `scanAt`: the offset of
   * the entropy-coded data of the scan.
   */
  readonly unchangedSegments: Buffer[];
  readonly scanHead: Buffer;
  readonly scanAt: number;
}

/** Returns the masked JPEG. Returns undefined if the JPEG cannot be masked; it must then not be kept. */
export function blackout(jpeg: Buffer, rects: readonly Rect[]): Buffer | undefined {
  const layout = readLayout(jpeg);
  if (!layout) return undefined;
  try {
    const bits = recodeScan(jpeg.subarray(layout.scanAt), layout, rects);
    const head = [Buffer.from([0xff, 0xd8]), ...layout.unchangedSegments, standardCodes.segment, layout.scanHead];
    return Buffer.concat([...head, bits, Buffer.from([0xff, 0xd9])]);
  } catch {
    return undefined;
  }
}

function readLayout(jpeg: Buffer): Layout | undefined {
  const tables = new Map<number, Uint16Array>();
  const quantizers = new Map<number, number>();
  const unchangedSegments: Buffer[] = [];
  const frame = { width: 0, height: 0, components: [] as Component[] };
  for (let at = 2; at + 4 <= jpeg.length && jpeg[at] === 0xff; ) {
    const marker = jpeg[at + 1] ?? 0;
    const end = at + 2 + jpeg.readUInt16BE(at + 2);
    const content = jpeg.subarray(at + 4, end);
    if (marker === SOS) {
      const isComplete = assignTables(content, frame.components);
      return isComplete
        ? {
            ...frame,
            tables,
            quantizers,
            unchangedSegments,
            scanHead: scanHead(frame.components),
            scanAt: end,
          }
        : undefined;
    }
    if (marker === DHT) readTables(content, tables);
    else {
      if (marker === DQT) readQuantizers(content, quantizers);
      else if (marker === SOF0) Object.assign(frame, readFrame(content));
      else if (marker === DRI || (marker > SOF0 && marker <= 0xcf)) return undefined;
      unchangedSegments.push(jpeg.subarray(at, end));
    }
    at = end;
  }
  return undefined;
}

function readFrame(content: Buffer): { width: number; height: number; components: Component[] } {
  const componentCount = content[5] ?? 0;
  const components = Array.from({ length: componentCount }, (_, index): Component => {
    const [id = 0, sampling = 0x11, quantizer = 0] = content.subarray(6 + index * 3, 9 + index * 3);
    return {
      id,
      horizontalSampling: sampling >> 4,
      verticalSampling: sampling & 15,
      quantizer,
      isLuma: index === 0,
      dc: 0,
      ac: 0,
    };
  });
  return { height: content.readUInt16BE(1), width: content.readUInt16BE(3), components };
}

function readTables(content: Buffer, tables: Map<number, Uint16Array>): void {
  for (let at = 0; at < content.length; ) {
    const counts = content.subarray(at + 1, at + 17);
    const symbolCount = counts.reduce((sum, count) => sum + count, 0);
    tables.set(content[at] ?? 0, decodeTableOf(counts, content.subarray(at + 17, at + 17 + symbolCount)));
    at += 17 + symbolCount;
  }
}

/** Reads the quantization tables. Keeps from each table only the quantizer of the first coefficient. */
function readQuantizers(content: Buffer, quantizers: Map<number, number>): void {
  for (let at = 0; at < content.length; ) {
    const precisionAndId = content[at] ?? 0;
    const is16Bit = precisionAndId >> 4 === 1;
    quantizers.set(precisionAndId & 15, is16Bit ? content.readUInt16BE(at + 1) : (content[at + 1] ?? 1));
    at += 1 + COEFFICIENTS_PER_BLOCK * (is16Bit ? 2 : 1);
  }
}

/**
 * Sets the Huffman table ids of the components from a scan header. Returns false if the scan does not contain all
 * components and all coefficients, as in a progressive JPEG.
 */
function assignTables(content: Buffer, components: readonly Component[]): boolean {
  const componentCount = content[0] ?? 0;
  if (componentCount !== components.length || componentCount === 0 || content[1 + componentCount * 2 + 1] !== 63)
    return false;
  for (const [index, component] of components.entries()) {
    const tableIds = content[2 + index * 2] ?? 0;
    if (content[1 + index * 2] !== component.id) return false;
    component.dc = tableIds >> 4;
    component.ac = tableIds & 15;
  }
  return true;
}

/** Writes a scan header that uses the standard codes: luminance for the first component, chrominance for the others. */
function scanHead(components: readonly Component[]): Buffer {
  const componentCodes = components.flatMap(({ id, isLuma }) => [id, isLuma ? 0x00 : 0x11]);
  const content = Buffer.from([components.length, ...componentCodes, 0, 63, 0]);
  return Buffer.concat([Buffer.from([0xff, SOS, 0, content.length + 2]), content]);
}

function recodeScan(
  scan: Buffer,
  { width, height, components, tables, quantizers }: Layout,
  rects: readonly Rect[],
): Buffer {
  const reader = new BitReader(scan);
  const writer = new BitWriter(scan.length + scan.length / 2);
  const maxHorizontalSampling = Math.max(...components.map(one => one.horizontalSampling));
  const maxVerticalSampling = Math.max(...components.map(one => one.verticalSampling));
  const unitsAcross = Math.ceil(width / (BLOCK_PIXELS * maxHorizontalSampling));
  const unitsDown = Math.ceil(height / (BLOCK_PIXELS * maxVerticalSampling));
  const coders = components.map(component => {
    const dc = tables.get(component.dc);
    const ac = tables.get(0x10 | component.ac);
    if (!dc || !ac) throw new Error('a Huffman table is missing');
    const black = component.isLuma ? Math.round(BLACK_DC / (quantizers.get(component.quantizer) ?? 1)) : 0;
    const codes = component.isLuma ? standardCodes.luma : standardCodes.chroma;
    const grid = {
      ...{
        width: (BLOCK_PIXELS * maxHorizontalSampling) / component.horizontalSampling,
        height: (BLOCK_PIXELS * maxVerticalSampling) / component.verticalSampling,
      },
      ...{ across: unitsAcross * component.horizontalSampling, down: unitsDown * component.verticalSampling },
    };
    const covered = coveredBlocks(rects, grid);
    return { ...component, dc, ac, black, codes, grid, covered, readDc: 0, writtenDc: 0 };
  });
  for (let unit = 0; unit < unitsAcross * unitsDown; unit++) {
    const column = unit % unitsAcross;
    const row = (unit - column) / unitsAcross;
    for (const coder of coders)
      for (let block = 0; block < coder.horizontalSampling * coder.verticalSampling; block++) {
        const x = column * coder.horizontalSampling + (block % coder.horizontalSampling);
        const y = row * coder.verticalSampling + Math.floor(block / coder.horizontalSampling);
        const isCovered = coder.covered[y * coder.grid.across + x] === 1;
        coder.readDc += reader.readSigned(reader.readSymbol(coder.dc));
        const dcValue = isCovered ? coder.black : coder.readDc;
        writer.writeCoefficient(coder.codes.dc, 0, dcValue - coder.writtenDc);
        coder.writtenDc = dcValue;
        recodeAcCoefficients(reader, writer, coder.ac, coder.codes.ac, isCovered);
      }
  }
  return writer.finish();
}

const END_OF_BLOCK_SYMBOL = 0x00;
const SIXTEEN_ZEROS_SYMBOL = 0xf0;

function recodeAcCoefficients(
  reader: BitReader,
  writer: BitWriter,
  table: Uint16Array,
  codes: HuffmanCode,
  isCovered: boolean,
): void {
  for (let at = 1; at < COEFFICIENTS_PER_BLOCK; at++) {
    const symbol = reader.readSymbol(table);
    const bits = symbol & 15;
    const hasNoBits = bits === 0;
    const value = hasNoBits ? 0 : reader.readBits(bits);
    if (!isCovered && (!hasNoBits || symbol === SIXTEEN_ZEROS_SYMBOL)) writer.writeSymbol(codes, symbol, value, bits);
    if (hasNoBits && symbol !== SIXTEEN_ZEROS_SYMBOL) break;
    at += symbol >> 4;
    if (at >= COEFFICIENTS_PER_BLOCK - 1 && !isCovered) return; // no end-of-block after the last coefficient
  }
  writer.writeSymbol(codes, END_OF_BLOCK_SYMBOL, 0, 0);
}

/** The blocks of one component. */
interface Grid {
  /** `width` and `height`: size of a block in pixels of the picture. `across` and `down`: numbers of blocks. */
  readonly width: number;
  readonly height: number;
  readonly across: number;
  readonly down: number;
}

function coveredBlocks(rects: readonly Rect[], grid: Grid): Uint8Array {
  const coveredBlockMask = new Uint8Array(grid.across * grid.down);
  for (const { x, y, width, height } of rects) {
    const firstColumn = Math.max(0, Math.floor(x / grid.width));
    const lastColumn = Math.min(grid.across - 1, Math.ceil((x + width) / grid.width) - 1);
    const lastRow = Math.min(grid.down - 1, Math.ceil((y + height) / grid.height) - 1);
    for (let row = Math.max(0, Math.floor(y / grid.height)); row <= lastRow; row++)
      if (lastColumn >= firstColumn)
        coveredBlockMask.fill(1, row * grid.across + firstColumn, row * grid.across + lastColumn + 1);
  }
  return coveredBlockMask;
}
