import{r as e,t}from"./chunk-SHT3W25Y-CxVfWdn3.js";import"./chunk-POPQ4Y6H-68EomT5g.js";import"./chunk-LNGE3PJU-DRjopGY8.js";import"./chunk-TLUHSLCS-C1Lc1tZ8.js";import"./chunk-F27PBJKO-BgTz6Qm6.js";import"./chunk-L3NEJ4N5-CBNodjKw.js";import"./chunk-OSK3NFVY-U8h0OKX-.js";import"./chunk-GVQU2GXP-DxztHXfS.js";import"./chunk-4HAMMTFA-BdGk1ewH.js";import"./chunk-P2QGCYS3-B7yQ5qLo.js";import"./chunk-GMAD6QVW-CwkCNInj.js";import"./chunk-PWAF6VOD-byhjNsL_.js";import"./chunk-75Z2AOVW-BUG4vvkR.js";import"./chunk-DU6HZSFF-BgsGFJFM.js";import"./d3-selection-DEdGh9ht.js";import{n}from"./chunk-Y2CYZVJY-DsF7k-Jl.js";var r=t({defaultLayout:`swimlane`,styles:n(t=>`${e(t)}
  .swimlane.cluster rect {
    stroke: ${t.clusterBorder} !important;
  }
  [data-look="neo"].cluster rect {
    filter: none;
  }
`,`getStyles`)});export{r as diagram};