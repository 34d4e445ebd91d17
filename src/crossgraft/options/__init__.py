"""Every option of every verb, spelled once; nothing here imports a network, an image or a command line."""

from crossgraft.options._option import Option as Option
from crossgraft.options._option import Options as Options
from crossgraft.options._option import configuration as configuration
from crossgraft.options._option import from_mapping as from_mapping
from crossgraft.options._option import given as given
from crossgraft.options._option import option as option
from crossgraft.options._option import options as options
from crossgraft.options._option import options_of as options_of
from crossgraft.options.checking import CheckOptions as CheckOptions
from crossgraft.options.exporting import ExportOptions as ExportOptions
from crossgraft.options.interpolating import InterpolateOptions as InterpolateOptions
from crossgraft.options.predicting import PredictOptions as PredictOptions
from crossgraft.options.ranking import Published as Published
from crossgraft.options.ranking import PublishedOptions as PublishedOptions
from crossgraft.options.ranking import RankOptions as RankOptions
from crossgraft.options.showing import Debug as Debug
from crossgraft.options.showing import DemoOptions as DemoOptions
from crossgraft.options.showing import Json as Json
from crossgraft.options.showing import ListOptions as ListOptions
from crossgraft.options.showing import Quiet as Quiet
from crossgraft.options.showing import ReportOptions as ReportOptions
from crossgraft.options.showing import Terminal as Terminal
from crossgraft.options.tuning import CompareOptions as CompareOptions
from crossgraft.options.tuning import FitOptions as FitOptions
from crossgraft.options.tuning import TuneOptions as TuneOptions
from crossgraft.options.tuning import VariantOptions as VariantOptions
